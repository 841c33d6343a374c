package control

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
)

func TestCall(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	release := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go Serve(ln, func(r Request) Answer {
		switch r.Verb {
		case Trigger:
			return Answer{Run: r.ID + 1}
		case Kill:
			cancel() // it is asked, and does not answer
			<-release
		}
		return Answer{Error: "no"}
	})
	if a, err := Call(t.Context(), socket, Request{Verb: Trigger, ID: 6}); err != nil || a.Err() != nil || a.Run != 7 {
		t.Errorf("%+v %v", a, err)
	}
	if a, err := Call(t.Context(), socket, Request{Verb: Stop}); err != nil || a.Err() == nil {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := Call(ctx, socket, Request{Verb: Kill}); err == nil {
		t.Error("an answer that never came")
	}
	close(release)
	if _, err := Call(t.Context(), socket+"x", Request{}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("nobody there: %v", err)
	}
}
