// sarama at secure listeners.
package main

import (
	"errors"
	"time"

	"secure/logins"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

type scramClient struct {
	hash         scram.HashGeneratorFcn
	conversation *scram.ClientConversation
}

func (s *scramClient) Begin(user, password, authzID string) error {
	client, err := s.hash.NewClient(user, password, authzID)
	if err == nil {
		s.conversation = client.NewConversation()
	}
	return err
}

func (s *scramClient) Step(challenge string) (string, error) { return s.conversation.Step(challenge) }

func (s *scramClient) Done() bool { return s.conversation.Done() }

type fixedToken string

func (t fixedToken) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(t)}, nil
}

func config(l logins.Login) (*sarama.Config, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Metadata.Retry.Max = 3
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	if l.Mechanism != "" {
		config.Net.SASL.Enable = true
		config.Net.SASL.Mechanism = sarama.SASLMechanism(l.Mechanism)
		config.Net.SASL.User, config.Net.SASL.Password = l.User, l.Password
		config.Net.SASL.TokenProvider = fixedToken(l.Token)
		hash := scram.SHA256
		if l.Mechanism == "SCRAM-SHA-512" {
			hash = scram.SHA512
		}
		config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: hash} }
	}
	protection, err := l.TLS()
	if protection != nil {
		config.Net.TLS.Enable = true
		config.Net.TLS.Config = protection
	}
	return config, err
}

func try(l logins.Login) ([]string, error) {
	settings, err := config(l)
	if err != nil {
		return nil, err
	}
	client, err := sarama.NewClient([]string{l.Bootstrap}, settings)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		return nil, err
	}
	for _, value := range l.Values {
		message := &sarama.ProducerMessage{Topic: l.Topic, Value: sarama.StringEncoder(value)}
		if _, _, err := producer.SendMessage(message); err != nil {
			return nil, err
		}
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	partition, err := consumer.ConsumePartition(l.Topic, 0, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	defer partition.AsyncClose()
	var read []string
	for len(read) < len(l.Values) {
		select {
		case message := <-partition.Messages():
			read = append(read, string(message.Value))
		case <-time.After(logins.Limit):
			return nil, errors.New("nothing came")
		}
	}
	return read, nil
}

func main() { logins.Each(try) }
