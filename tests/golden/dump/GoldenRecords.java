import com.fasterxml.jackson.databind.*; import com.fasterxml.jackson.databind.node.*;
import java.io.*; import java.util.*; import java.lang.reflect.*;
import org.apache.kafka.common.protocol.*;
/** Reads {family, type, version, key, value} lines, writes them with Kafka's bytes and Kafka's own JSON of them. */
public class GoldenRecords {
  public static void main(String[] a) throws Exception {
    ObjectMapper m=new ObjectMapper(); BufferedReader in=new BufferedReader(new InputStreamReader(System.in,"UTF-8")); String line;
    PrintStream out=new PrintStream(System.out,true,"UTF-8");
    while((line=in.readLine())!=null){ JsonNode n=m.readTree(line);
      Class<?> c=Class.forName("org.apache.kafka.coordinator."+n.get("family").asText()+".generated.CoordinatorRecordJsonConverters");
      short type=(short)n.get("type").asInt(), version=(short)n.get("version").asInt();
      ApiMessage key=(ApiMessage)c.getMethod("readRecordKeyFromJson",JsonNode.class,short.class).invoke(null,n.get("key"),type);
      ApiMessage value=(ApiMessage)c.getMethod("readRecordValueFromJson",JsonNode.class,short.class,short.class).invoke(null,n.get("value"),type,version);
      ObjectNode o=m.createObjectNode(); o.put("family",n.get("family").asText());
      o.put("keyHex",HexFormat.of().formatHex(MessageUtil.toCoordinatorTypePrefixedBytes(key)));
      o.put("valueHex",HexFormat.of().formatHex(MessageUtil.toVersionPrefixedBytes(version,value)));
      o.set("key",m.createObjectNode().put("type",""+type).set("data",(JsonNode)c.getMethod("writeRecordKeyAsJson",ApiMessage.class).invoke(null,key)));
      o.set("value",m.createObjectNode().put("version",""+version).set("data",(JsonNode)c.getMethod("writeRecordValueAsJson",ApiMessage.class,short.class).invoke(null,value,version)));
      out.println(m.writeValueAsString(o)); } } }
