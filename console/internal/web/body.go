package web

// Bodies of requests: how fast they have to come.

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// A body that falls behind its rate, which is counted from two seconds after it is begun with, or that
// has not come in time, is given up.
const (
	bodyRate    = 16 << 10 // bytes a second
	bodyGrace   = 2 * time.Second
	bodyTimeout = 10 * time.Second
)

// ErrSlowBody is returned for a body that has come slower than it may.
var ErrSlowBody = errors.New("console: a body comes too slowly")

// ReadBody reads a body that comes no slower than it may; else the error is ErrSlowBody.
func ReadBody(control *http.ResponseController, body io.Reader) (string, error) {
	var all strings.Builder
	began, piece := time.Now(), make([]byte, 4<<10)
	for {
		deadline := began.Add(min(bodyTimeout, bodyGrace+time.Duration(all.Len())*time.Second/bodyRate))
		if err := control.SetReadDeadline(deadline); err != nil && time.Now().After(deadline) {
			return "", ErrSlowBody
		}
		n, err := body.Read(piece)
		all.Write(piece[:n])
		switch {
		case err == io.EOF:
			_ = control.SetReadDeadline(time.Time{}) // from here on the server watches the connection
			return all.String(), nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return "", ErrSlowBody
		case err != nil:
			return "", err
		}
	}
}
