// A caller in Go: one unary call, one batch, one stream, and a refusal, by a stub generated from proto/.
//
// It says in JSON what became of each, for the test that runs it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	waypostv1 "waypost/caller/waypost/v1"
)

type told struct {
	Unary     string            `json:"unary"`
	Repeated  string            `json:"repeated"`
	Batch     []string          `json:"batch"`
	Stream    map[uint64]string `json:"stream"`
	Code      string            `json:"code"`
	Reason    string            `json:"reason"`
	Field     string            `json:"field"`
	FoundUser string            `json:"found_user"`
}

func main() {
	if err := call(os.Args[1], os.Getenv("WAYPOST_API_KEY")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func shown(user, title string) *waypostv1.Submission {
	return &waypostv1.Submission{UserId: proto.String(user), Title: proto.String(title)}
}

func call(address, key string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key)
	client := waypostv1.NewNotificationsClient(connection)
	said := told{Stream: map[uint64]string{}}
	if err := single(ctx, client, &said); err != nil {
		return fmt.Errorf("unary: %w", err)
	}
	if err := batch(ctx, client, &said); err != nil {
		return fmt.Errorf("batch: %w", err)
	}
	if err := stream(ctx, client, &said); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

func single(ctx context.Context, client waypostv1.NotificationsClient, said *told) error {
	keyed := metadata.AppendToOutgoingContext(ctx, "idempotency-key", "from-go")
	for _, id := range []*string{&said.Unary, &said.Repeated} {
		made, err := client.Submit(keyed, shown("user-0", "unary"))
		if err != nil {
			return err
		}
		*id = made.Id
	}
	found, err := client.Get(ctx, &waypostv1.GetRequest{Id: said.Unary})
	if err != nil {
		return err
	}
	said.FoundUser = found.UserId
	_, err = client.Submit(ctx, &waypostv1.Submission{UserId: proto.String("user-0"), Ttl: proto.Int32(-1)})
	refused := status.Convert(err)
	said.Code = refused.Code().String()
	for _, detail := range refused.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			said.Reason = detail.Reason
		case *errdetails.BadRequest:
			said.Field = detail.FieldViolations[0].Field
		}
	}
	return nil
}

func batch(ctx context.Context, client waypostv1.NotificationsClient, said *told) error {
	items := []*waypostv1.Submission{}
	for n := range 5 {
		items = append(items, shown(fmt.Sprintf("user-%d", n), fmt.Sprintf("batch %d", n)))
	}
	answer, err := client.SubmitBatch(ctx, &waypostv1.SubmitBatchRequest{Notifications: items})
	if err != nil {
		return err
	}
	for _, result := range answer.Results {
		said.Batch = append(said.Batch, result.GetNotification().GetId())
	}
	return nil
}

func stream(ctx context.Context, client waypostv1.NotificationsClient, said *told) error {
	open, err := client.SubmitStream(ctx)
	if err != nil {
		return err
	}
	for n := range uint64(20) {
		item := &waypostv1.StreamItem{Sequence: n, Notification: shown(fmt.Sprintf("user-%d", n%5), fmt.Sprintf("stream %d", n))}
		if err := open.Send(&waypostv1.SubmitStreamRequest{Items: []*waypostv1.StreamItem{item}}); err != nil {
			return err
		}
	}
	if err := open.CloseSend(); err != nil {
		return err
	}
	for {
		answer, err := open.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, acknowledgement := range answer.Acknowledgements {
			said.Stream[acknowledgement.Sequence] = acknowledgement.GetNotification().GetId()
		}
	}
}
