// Package logins has the table that the test gives on stdin, as JSON, and prints what becomes of each login.
package logins

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"sync"
	"time"
)

// Limit of what a login waits for; nothing that is asserted depends on it.
const Limit = 120 * time.Second

// Login is what a client sets, and what it writes and reads.
type Login struct {
	Name, Bootstrap, Topic, Mechanism, User, Password, Token string
	CA, Key, Certificate                                     string
	Values                                                   []string
}

type outcome struct {
	Name  string   `json:"name"`
	Read  []string `json:"read"`
	Error string   `json:"error"`
}

// TLS returns what protects the connection, or nil.
func (l Login) TLS() (*tls.Config, error) {
	if l.CA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(l.CA)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(pem)
	if l.Certificate != "" {
		own, err := tls.LoadX509KeyPair(l.Certificate, l.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

// Each tries every login of the table at once, and prints a line of JSON for each.
func Each(try func(Login) ([]string, error)) {
	var table []Login
	if err := json.NewDecoder(os.Stdin).Decode(&table); err != nil {
		panic(err)
	}
	outcomes := make([]outcome, len(table))
	var all sync.WaitGroup
	for index, login := range table {
		all.Add(1)
		go func(index int, login Login) { // before Go 1.22 a loop has one variable for all its turns
			defer all.Done()
			read, err := try(login)
			outcomes[index] = outcome{Name: login.Name, Read: read}
			if err != nil {
				outcomes[index].Error = err.Error()
			}
		}(index, login)
	}
	all.Wait()
	for _, one := range outcomes {
		if err := json.NewEncoder(os.Stdout).Encode(one); err != nil {
			panic(err)
		}
	}
}
