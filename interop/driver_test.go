package interop_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// driver is a process with the HTTP client that an admin of XXL-JOB calls
// executors with.
type driver struct {
	t       *testing.T
	address string // of the executor that is called, or of the admin
	app     string
	token   string
	in      io.Writer
	out     *bufio.Scanner
}

// newDriver starts the client of a Java version.
func newDriver(t *testing.T, version string) *driver {
	t.Helper()
	fromUs, toUs := io.Pipe()
	fromThem, toThem := io.Pipe()
	p := start(t, version+" admin client", fromUs, toThem, t.TempDir(), append(javaArgv(artifact(t, version)), "peer.AdminDriver")...)
	t.Cleanup(func() { // before the process is killed: it ends with its input
		_ = toUs.Close()
		_ = fromThem.Close() // what nobody has read must not keep it from ending
		<-p.done
	})
	d := &driver{t: t, app: theApp, token: theToken, in: toUs, out: bufio.NewScanner(fromThem)}
	d.out.Buffer(nil, 4<<20)
	go func() { // ended by the end of the process
		<-p.done
		_ = toThem.Close()
		_ = fromUs.CloseWithError(errors.New("the process has ended"))
	}()
	return d
}

// answer is what the client has made of an answer. The payload is a string, or
// an object for log, under the key of its version.
type answer struct {
	Code      int
	Msg       string
	Content   json.RawMessage
	Data      json.RawMessage
	Exception string
}

// payload reads the payload into v.
func (a answer) payload(t *testing.T, v any) {
	t.Helper()
	b := a.Content
	if b == nil {
		b = a.Data
	}
	if b == nil {
		return
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%+v: %v", a, err)
	}
}

// call has the executor called, and wants an answer that the client takes.
func (d *driver) call(endpoint string, request any) answer {
	d.t.Helper()
	order, err := json.Marshal(map[string]any{"address": d.address, "app": d.app, "token": d.token, "endpoint": endpoint, "request": request})
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(d.in, "%s\n", order); err != nil {
		d.t.Fatalf("%s: %v", endpoint, err)
	}
	for {
		if !d.out.Scan() {
			d.t.Fatalf("%s: no answer: %v", endpoint, d.out.Err())
		}
		if bytes.HasPrefix(d.out.Bytes(), []byte("{")) {
			break
		}
		d.t.Logf("the client says %q", d.out.Text()) // the JVM, of itself
	}
	var a answer
	if err := json.Unmarshal(d.out.Bytes(), &a); err != nil {
		d.t.Fatalf("%s: %q: %v", endpoint, d.out.Text(), err)
	}
	if a.Exception != "" {
		d.t.Fatalf("%s: the client throws %s", endpoint, a.Exception)
	}
	return a
}

// ok wants code 200.
func (d *driver) ok(endpoint string, request any) answer {
	d.t.Helper()
	a := d.call(endpoint, request)
	if a.Code != wire.CodeSuccess {
		d.t.Errorf("%s %s: %+v, want code 200", endpoint, brief(request), a)
	}
	return a
}

// refused wants code 500 with a text.
func (d *driver) refused(endpoint string, request any, text string) {
	d.t.Helper()
	if a := d.call(endpoint, request); a.Code != wire.CodeFail || a.Msg != text {
		d.t.Errorf("%s %s: %+v, want a refusal: %q", endpoint, brief(request), a, text)
	}
}

// brief is a request for people, without what is long in it.
func brief(request any) string {
	text := fmt.Sprintf("%+v", request)
	return text[:min(len(text), 400)]
}

// of is the same driver for another executor.
func (d *driver) of(address string) *driver {
	own := *d
	own.address = address
	return &own
}

// with is the same driver for a subtest.
func (d *driver) with(t *testing.T) *driver {
	own := *d
	own.t = t
	return &own
}
