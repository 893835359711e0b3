// Sends to APNs with sideshow/apns2, or to push services with webpush-go: `go-peer LIBRARY ORDER`, ORDER as in drive.py.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/SherClockHolmes/webpush-go"
	"github.com/sideshow/apns2"
	"github.com/sideshow/apns2/token"
	"golang.org/x/net/http2"
)

type order struct {
	URL           string                 `json:"url"`
	CAFile        string                 `json:"ca_file"`
	APNsKeyFile   string                 `json:"apns_key_file"`
	VAPIDPublic   string                 `json:"vapid_public"`
	VAPIDPrivate  string                 `json:"vapid_private"`
	Count         int                    `json:"count"`
	InFlight      int                    `json:"in_flight"`
	Tokens        []string               `json:"tokens"`
	Subscriptions []webpush.Subscription `json:"subscriptions"`
}

const warmUp = 100

func cpu() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}

func main() {
	text, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	var wanted order
	if err := json.Unmarshal(text, &wanted); err != nil {
		log.Fatal(err)
	}
	authority, err := os.ReadFile(wanted.CAFile)
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	transport := &http2.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	send := map[string]func(order, *http2.Transport) func(int){"apns2": apple, "webpush-go": browser}[os.Args[1]](wanted, transport)
	run(send, 0, warmUp, wanted.InFlight)
	before, started := cpu(), time.Now()
	run(send, warmUp, wanted.Count, wanted.InFlight)
	fmt.Printf("{\"seconds\": %f, \"cpu_s\": %f}\n", time.Since(started).Seconds(), cpu()-before)
}

func run(send func(int), first, count, inFlight int) {
	numbers := make(chan int)
	var running sync.WaitGroup
	for range min(inFlight, count) {
		running.Add(1)
		go func() {
			defer running.Done()
			for n := range numbers {
				send(n)
			}
		}()
	}
	for n := range count {
		numbers <- first + n
	}
	close(numbers)
	running.Wait()
}

func apple(wanted order, transport *http2.Transport) func(int) {
	key, err := token.AuthKeyFromFile(wanted.APNsKeyFile)
	if err != nil {
		log.Fatal(err)
	}
	client := apns2.NewTokenClient(&token.Token{AuthKey: key, KeyID: "ABCDE12345", TeamID: "FGHIJ67890"})
	client.Host = wanted.URL
	client.HTTPClient.Transport = transport
	return func(n int) {
		aps := map[string]any{"alert": map[string]string{"title": "Your parcel is here", "body": fmt.Sprintf("Number %d was left at the front door.", n)}}
		payload := map[string]any{"aps": aps, "mark": fmt.Sprint(n)}
		notification := &apns2.Notification{DeviceToken: wanted.Tokens[n%len(wanted.Tokens)], Topic: "com.example.demo", Payload: payload}
		answer, err := client.Push(notification)
		if err != nil || !answer.Sent() {
			log.Fatalf("%v %v", answer, err)
		}
	}
}

func browser(wanted order, transport *http2.Transport) func(int) {
	client := &http.Client{Transport: transport}
	return func(n int) {
		body := fmt.Sprintf(`{"title":"Your parcel is here","body":"Number %d was left at the front door.","data":{"mark":"%d"}}`, n, n)
		options := &webpush.Options{HTTPClient: client, Subscriber: "ops@example.com", TTL: 86400,
			VAPIDPublicKey: wanted.VAPIDPublic, VAPIDPrivateKey: wanted.VAPIDPrivate}
		answer, err := webpush.SendNotification([]byte(body), &wanted.Subscriptions[n%len(wanted.Subscriptions)], options)
		if err != nil {
			log.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != 201 {
			log.Fatal(answer.Status)
		}
	}
}
