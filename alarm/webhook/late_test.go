package webhook_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/alarm/webhook"
)

// A connection that comes when the message is given up is closed.
func TestConnectionComesLate(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		synctest.Test(t, func(t *testing.T) {
			client, conn := net.Pipe()
			h, err := webhook.New(webhook.Config{
				URL: scheme + "://hook.example.org/", AllowHTTP: true, Timeout: 3 * time.Second,
				DialContext: func(context.Context, string, string) (net.Conn, error) {
					time.Sleep(time.Minute) // whatever its context says
					return client, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Alarm(context.Background(), one()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil { // to its end, or for ever
				t.Error(err)
			}
		})
	}
}

// A secret with characters that an error has not is not in it as what is left of them.
func TestSecretOfOddCharacters(t *testing.T) {
	for _, secret := range []string{"s3cret\tof-hook", "s3cret\u200bof-hook", "s3cret\x7fof\u202e-hook"} {
		synctest.Test(t, func(t *testing.T) {
			service := newMemory(t, "no: "+secret)
			service.status = 400
			p := presets()[0]
			p.secret = secret
			if err := service.hook(t, p).Alarm(context.Background(), one()); err == nil || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%q: %v", secret, err)
			}
		})
	}
}
