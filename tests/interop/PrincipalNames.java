import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Arrays;
import java.util.Base64;
import java.util.Scanner;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** Lines of base64, by tabs: "cert" and a certificate, or "map" or "short", rules and a name. Prints base64 of the name, or "!". */
public class PrincipalNames {
    public static void main(String[] arguments) throws Exception {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] fields = lines.nextLine().split("\t", -1);
            String answer;
            try {
                byte[] first = Base64.getDecoder().decode(fields[1]);
                String name;
                if (fields[0].equals("cert")) {
                    X509Certificate certificate = (X509Certificate) CertificateFactory.getInstance("X.509")
                        .generateCertificate(new ByteArrayInputStream(first));
                    name = certificate.getSubjectX500Principal().getName();
                } else if (fields[0].equals("short")) {
                    String[] rules = new String(first, StandardCharsets.UTF_8).split("\\s*,\\s*", -1);
                    String given = new String(Base64.getDecoder().decode(fields[2]), StandardCharsets.UTF_8);
                    name = KerberosShortNamer.fromUnparsedRules("TEST.LOCAL", Arrays.asList(rules))
                        .shortName(KerberosName.parse(given));
                } else {
                    String rules = new String(first, StandardCharsets.UTF_8);
                    String given = new String(Base64.getDecoder().decode(fields[2]), StandardCharsets.UTF_8);
                    name = SslPrincipalMapper.fromRules(rules).getName(given);
                }
                answer = Base64.getEncoder().encodeToString(name.getBytes(StandardCharsets.UTF_8));
            } catch (Exception failed) {
                answer = "!" + failed.getClass().getSimpleName();
            }
            System.out.println(answer);
        }
    }
}
