// KafkaJS at secure listeners: reads a table of logins from stdin, as JSON, and prints what became of each, one a line.
"use strict";

const fs = require("fs");
const { Kafka, logLevel } = require("kafkajs");

const LIMIT_MS = 180000;

function client(login) {
  const settings = {
    brokers: [login.bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { retries: 3, initialRetryTime: 50 },
    connectionTimeout: LIMIT_MS / 3,
    authenticationTimeout: LIMIT_MS,
  };
  if (login.ca) settings.ssl = { ca: [fs.readFileSync(login.ca)] };
  if (login.certificate) {
    settings.ssl.key = fs.readFileSync(login.key);
    settings.ssl.cert = fs.readFileSync(login.certificate);
  }
  const mechanism = login.mechanism.toLowerCase();
  if (mechanism === "oauthbearer") {
    settings.sasl = { mechanism, oauthBearerProvider: async () => ({ value: login.token }) };
  } else if (mechanism) {
    settings.sasl = { mechanism, username: login.user, password: login.password };
  }
  return new Kafka(settings);
}

async function read(kafka, login) {
  const consumer = kafka.consumer({ groupId: `g-${login.topic}`, maxWaitTimeInMs: 200 });
  await consumer.connect();
  await consumer.subscribe({ topic: login.topic, fromBeginning: true });
  let timer;
  try {
    return await new Promise((resolve, reject) => {
      const found = [];
      timer = setTimeout(() => reject(new Error("nothing came")), LIMIT_MS);
      consumer.run({
        eachMessage: async ({ message }) => {
          found.push(message.value.toString());
          if (found.length === login.values.length) resolve(found);
        },
      }).catch(reject);
    });
  } finally {
    clearTimeout(timer);
    await consumer.disconnect();
  }
}

async function attempt(login) {
  const kafka = client(login);
  const producer = kafka.producer();
  try {
    await producer.connect();
    for (const value of login.values) {
      await producer.send({ topic: login.topic, messages: [{ value, partition: 0 }] });
    }
  } finally {
    await producer.disconnect();
  }
  return read(kafka, login);
}

async function main() {
  const logins = JSON.parse(fs.readFileSync(0, "utf8"));
  const outcomes = await Promise.all(logins.map(async (login) => {
    try {
      return { name: login.name, read: await attempt(login), error: "" };
    } catch (error) {
      return { name: login.name, read: null, error: `${error.name}: ${error.message}` };
    }
  }));
  for (const one of outcomes) console.log(JSON.stringify(one));
}

main();
