package sink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/smtp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
)

// sender sends a message about an event of a job.
type sender func(ctx context.Context, alarm, job, run int64) error

func post(s *HTTP) sender {
	return func(ctx context.Context, alarm, job, run int64) error {
		body := fmt.Sprintf(`{"id":"xxljob-%d-http","job_id":"%d","count":1,"events":[{"cause":"failed","run_id":"%d","instant":"1970-01-01T00:00:05.000Z"}]}`, alarm, job, run)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL(), strings.NewReader(body))
		if err != nil {
			return err
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer a.Body.Close()
		if a.StatusCode != http.StatusOK {
			return errors.New(a.Status)
		}
		return nil
	}
}

func write(s *SMTP) sender {
	return func(ctx context.Context, alarm, job, run int64) error {
		text := fmt.Sprintf("Subject: xxljob-%d-smtp %d 1\r\n %d failed 5000\r\n\r\nwords\r\n", alarm, job, run)
		ended := make(chan error, 1)
		go func() {
			ended <- smtp.SendMail(s.listener.Addr().String(), nil, "a@example.org", []string{"b@example.org"}, []byte(text))
		}()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestSinks: half of the messages are refused or have no answer, and those that are accepted
// are written down; when the sinks are calm, everything is.
func TestSinks(t *testing.T) {
	h, err := ListenHTTP("http", 1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ListenSMTP("smtp", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	defer h.Close()
	for b, send := range map[*book]sender{h.book: post(h), s.book: write(s)} {
		var well []int64
		refused, waited := 0, 0
		for n := range int64(40) {
			ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
			switch err := send(ctx, n, 7, 100+n); {
			case err == nil:
				well = append(well, n)
			case ctx.Err() != nil:
				waited++
			default:
				refused++
			}
			cancel()
		}
		if len(well) < 10 || refused < 3 || waited < 3 {
			t.Errorf("%s accepted %d, refused %d and left %d waiting", b.name, len(well), refused, waited)
		}
		b.Calm()
		for n := range int64(20) {
			if err := send(t.Context(), 60+n, 7, 160+n); err != nil {
				t.Errorf("%s is calm: %v", b.name, err)
			}
			well = append(well, 60+n)
		}
		told := b.Told()
		for i := range told {
			if told[i].At == 0 {
				t.Errorf("%+v has no time", told[i])
			}
			told[i].At = 0
		}
		for _, n := range well {
			want := audit.Told{Sink: b.name, Alarm: n, Run: 100 + n, Cause: "failed", Instant: 5000}
			if !slices.Contains(told, want) {
				t.Errorf("%s was told %+v, want %+v among them", b.name, told, want)
			}
		}
	}
}

// TestNoEvent: what tells of no event is written down.
func TestNoEvent(t *testing.T) {
	h, err := ListenHTTP("http", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	a, err := http.Post(h.URL(), "application/json", strings.NewReader(`{"id":"xxljob-7-http","job_id":"7","count":1,"events":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if told := h.Told(); len(told) != 1 || told[0].Alarm != 0 || !strings.Contains(told[0].Cause, "xxljob-7-http") {
		t.Errorf("told %+v", told)
	}
	if _, _, err := read("Subject: xxljob-7-smtp 7 1\r\n\r\n"); err == nil {
		t.Error("a mail of no event is read")
	}
}

// TestTrouble: what tells of a trouble of a node is accepted, and written down by the name of the message.
func TestTrouble(t *testing.T) {
	h, err := ListenHTTP("http", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, id := range []string{"xxljob-t12-http", "xxljob-t0123456789012345-http"} {
		a, err := http.Post(h.URL(), "application/json", strings.NewReader(`{"id":"`+id+`","cause":"trouble","trouble":"clock","app":"second","job_id":"0","count":1,"events":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != http.StatusOK {
			t.Error(a.Status)
		}
	}
	is := audit.Told{Alarm: 12, Message: "xxljob-t12-http", Cause: "trouble", Trouble: "clock", App: "second"}
	told := h.Told()
	if len(told) != 2 || told[1].Alarm != 0 || told[1].Message != "xxljob-t0123456789012345-http" {
		t.Fatalf("told %+v", told)
	}
	if is.Sink, is.At = "http", told[0].At; told[0] != is {
		t.Errorf("told %+v, want %+v", told[0], is)
	}
	mail, _, err := read("Subject: xxljob-t12-smtp 0 1 trouble clock \"second\"\r\n\r\n")
	is.Message, is.Sink, is.At = "xxljob-t12-smtp", "", 0
	if err != nil || mail != is {
		t.Errorf("a mail of a trouble: %+v, %v", mail, err)
	}
	if rows := h.Alarms(); len(rows) != 0 {
		t.Errorf("rows %+v", rows)
	}
}
