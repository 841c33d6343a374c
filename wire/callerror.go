package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// CallError is the error of a call over HTTP. Its outcome is unknown, unless Sent
// is false. It never holds a token.
type CallError struct {
	// URL is what was called.
	URL string
	// Sent says that the peer may have received something of the request. False
	// is certain: no byte of it has left this process, nor ever will.
	Sent bool
	// Status is the status of HTTP that came instead of 200, 0 for none. Peers
	// answer everything with 200; another status comes from something in
	// between, or from no peer.
	Status int
	// Text is the beginning of an answer that could not be understood, at most
	// 500 bytes of UTF-8, for people.
	Text string
	// Err is what went wrong, nil where Status says it all. Its text may quote what the
	// peer has sent; CallError.Error has its first 500 bytes.
	Err error
}

func (e *CallError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "xxljob: POST %s: ", e.URL)
	if !e.Sent {
		b.WriteString("nothing sent: ")
	}
	switch {
	case e.Err != nil:
		b.WriteString(cut([]byte(e.Err.Error()), maxText))
	default:
		b.WriteString("HTTP status " + strconv.Itoa(e.Status))
	}
	if e.Text != "" {
		fmt.Fprintf(&b, ": %q", e.Text)
	}
	return b.String()
}

func (e *CallError) Unwrap() error { return e.Err }

// NotSent reports whether err is of a call that certainly has not reached its
// peer, not even in part. Its outcome is as good as refused: another peer may be
// asked. For every other error the outcome is unknown.
func NotSent(err error) bool {
	var call *CallError
	return errors.As(err, &call) && !call.Sent
}
