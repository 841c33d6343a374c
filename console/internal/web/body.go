package web

// Bodies of requests, and the forms in them: how long they may be, how many are read at a time, and how
// fast they have to come.

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xxljob/xxljob/internal/slots"
)

// The bounds of bodies.
const (
	MostOpen    = 8 << 10  // bytes of a form of somebody who is not logged in, but for one that is kept
	smallBody   = 64 << 10 // bytes of a user's body that needs no slot; without a user: MostOpen
	largeBodies = 16       // slots: half of them for those who are not logged in, four for each
	drainTime   = 500 * time.Millisecond
)

// NewBodies are the slots of bodies that are large.
func NewBodies() *slots.Slots { return slots.New(largeBodies) }

// FormBounds are how many bytes and fields a form may have, and for whom it counts.
type FormBounds struct {
	Bytes  int64
	Fields int
	Who    slots.Holder // proved for a user
	Needs  string       // a field without which a form has no more than MostOpen: it is among the first of these
}

// ReadForm reads the form that the body of the request has, and says how many bytes that was. A large
// one has a slot until it is answered. Fields are counted before anything is made of them.
func (x *Exchange) ReadForm(bodies *slots.Slots, of FormBounds) (size int, err error) {
	kind, _, err := mime.ParseMediaType(x.R.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return 0, &Problem{Status: http.StatusUnsupportedMediaType, Key: "problem.bad", Cause: fmt.Errorf("content type %q", kind)}
	}
	text, err := x.readBody(bodies, of)
	if err != nil {
		return 0, err
	}
	if n := strings.Count(text, "&") + 1; n > of.Fields {
		return 0, &Problem{Status: http.StatusRequestEntityTooLarge, Key: "problem.fields", Values: []any{"n", n, "most", of.Fields}}
	}
	form, err := url.ParseQuery(text)
	if err != nil {
		return 0, BadRequest(err)
	}
	x.R.PostForm = form
	for name, values := range form {
		for _, text := range append([]string{name}, values...) {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				return 0, BadRequest(fmt.Errorf("field %q is no text", name))
			}
		}
	}
	return len(text), nil
}

func (x *Exchange) readBody(bodies *slots.Slots, of FormBounds) (string, error) {
	length, small := x.R.ContentLength, int64(smallBody)
	if of.Who.Proved == "" {
		small = MostOpen
	}
	if length > of.Bytes {
		return "", ErrTooLarge
	}
	if (length < 0 || length > small) && !x.Hold(x.R.Context(), bodies, of.Who) {
		return "", errManyBodies
	}
	text, err := inTime(http.NewResponseController(x.W), http.MaxBytesReader(x.W, x.R.Body, of.Bytes), of.Needs)
	x.hasRead = err == nil
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, errSlowBody):
		return "", errSlowBody
	case errors.Is(err, ErrTooLarge), errors.As(err, &large):
		return "", ErrTooLarge
	case err != nil:
		return "", BadRequest(err)
	}
	return text, nil
}

// Leave gives back what the request has, when it has its answer. The server has a moment to read what
// nobody has wanted, so that the browser has sent it and reads the answer.
func (x *Exchange) Leave() {
	for _, give := range x.giveBack {
		give()
	}
	if !x.hasRead && x.R.Body != nil && x.R.Body != http.NoBody {
		_ = http.NewResponseController(x.W).SetReadDeadline(time.Now().Add(drainTime))
	}
}

// A body that falls behind its rate, which is counted from two seconds after it is begun with, or that
// has not come in time, is given up.
const (
	bodyRate    = 16 << 10 // bytes a second
	bodyGrace   = 2 * time.Second
	bodyTimeout = 10 * time.Second
)

// inTime reads a body that comes no slower than it may; else the error is errSlowBody. Where a field is needed
// for more than MostOpen, and is not there by then, it is ErrTooLarge.
func inTime(control *http.ResponseController, body io.Reader, needs string) (string, error) {
	var all strings.Builder
	began, piece := time.Now(), make([]byte, 4<<10)
	for {
		deadline := began.Add(min(bodyTimeout, bodyGrace+time.Duration(all.Len())*time.Second/bodyRate))
		if err := control.SetReadDeadline(deadline); err != nil && time.Now().After(deadline) {
			return "", errSlowBody
		}
		n, err := body.Read(piece)
		all.Write(piece[:n])
		if needs != "" && all.Len() > MostOpen {
			if !hasField(all.String(), needs) {
				return "", ErrTooLarge
			}
			needs = ""
		}
		switch {
		case err == io.EOF:
			_ = control.SetReadDeadline(time.Time{}) // from here on the server watches the connection
			return all.String(), nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return "", errSlowBody
		case err != nil:
			return "", err
		}
	}
}

// hasField reports whether a form has a field.
func hasField(form, name string) bool {
	return strings.HasPrefix(form, name+"=") || strings.Contains(form, "&"+name+"=")
}
