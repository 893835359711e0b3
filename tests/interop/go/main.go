// An HTTP/2 server on Go's net/http: answers with the SHA-256 of the body in hexadecimal, then the body.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	answer := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		sum := sha256.Sum256(body)
		w.Write([]byte(hex.EncodeToString(sum[:])))
		w.Write(body)
	}
	server := &http.Server{Handler: http.HandlerFunc(answer)}
	panic(server.ServeTLS(listener, os.Args[1], os.Args[2]))
}
