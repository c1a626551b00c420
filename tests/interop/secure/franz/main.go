// franz-go at secure listeners.
package main

import (
	"context"

	"secure/logins"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func mechanism(l logins.Login) sasl.Mechanism {
	switch l.Mechanism {
	case "PLAIN":
		return plain.Auth{User: l.User, Pass: l.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: l.User, Pass: l.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: l.User, Pass: l.Password}.AsSha512Mechanism()
	default:
		return oauth.Auth{Token: l.Token}.AsMechanism()
	}
}

func options(l logins.Login) ([]kgo.Opt, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(l.Bootstrap),
		kgo.AllowAutoTopicCreation(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{l.Topic: {0: kgo.NewOffset().AtStart()}}),
	}
	if l.Mechanism != "" {
		options = append(options, kgo.SASL(mechanism(l)))
	}
	config, err := l.TLS()
	if config != nil {
		options = append(options, kgo.DialTLSConfig(config))
	}
	return options, err
}

func try(l logins.Login) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), logins.Limit)
	defer cancel()
	settings, err := options(l)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(settings...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return nil, err
	}
	for _, value := range l.Values {
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: l.Topic, Value: []byte(value)}).FirstErr(); err != nil {
			return nil, err
		}
	}
	var read []string
	for len(read) < len(l.Values) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(record *kgo.Record) { read = append(read, string(record.Value)) })
	}
	return read, nil
}

func main() { logins.Each(try) }
