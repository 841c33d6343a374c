package wire

// Bodies of requests, as they come, and the memory that they are read into.

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// smallBody is up to what length, in bytes, a body needs no slot. Most requests are
	// below 1 KiB.
	smallBody = 64 << 10
	// wideBody is up to what length a body is read with a slot alone: longer ones, which take some
	// three times that until they are served, are one in wideBodies.
	wideBody, wideBodies = 1 << 20, 8
	// firstRead bounds how much of a body is read before the token is known to be right.
	firstRead = 4 << 10
	// bodyGrace is how long a body may take on top of what the least rate allows it.
	bodyGrace = 2 * time.Second
	// drainTime is how long the server may take to read what is left of a body that is
	// refused, so that the peer has sent it and reads the answer.
	drainTime = 500 * time.Millisecond
)

// body is the body of a request, as far as it has been read. The further it is, the later
// is the deadline for the rest: a body that comes too slowly ends with an error.
type body struct {
	src     io.Reader
	control *http.ResponseController
	cfg     *HandlerConfig
	buffers *buffers
	most    int64  // how many bytes it can have
	limit   int64  // how many it may have, packed and unpacked
	small   bool   // it is known to have smallBody at most
	packed  string // its Content-Encoding, empty for none
	began   time.Time
	room    *buffer // where got begins, nil for nothing yet
	got     []byte
	err     error // why it has ended, io.EOF if all is there

	widen   func() bool // asks for room for more than wideBody
	wide    bool        // it has that
	crowded bool        // it could not have it in time
}

// open begins to read the body of a request, of limit bytes at most. One that is longer
// than it has said, since the host has unpacked it, say, is bounded by its kind.
func (s *server) open(w http.ResponseWriter, r *http.Request, limit int64) body {
	b := body{cfg: &s.cfg, buffers: &s.buffers, most: limit}
	if r.Body == nil || r.Body == http.NoBody {
		b.small, b.err = true, io.EOF
		return b
	}
	b.control = http.NewResponseController(w)
	b.packed = packing(r.Header)
	b.small = 0 < r.ContentLength && r.ContentLength <= smallBody && b.packed == ""
	if b.small {
		limit = min(limit, smallBody)
	}
	if b.limit = limit; r.ContentLength > 0 && b.packed == "" {
		b.most = min(limit, r.ContentLength)
	}
	b.src = http.MaxBytesReader(w, r.Body, limit)
	b.restart()
	return b
}

// restart begins to count the time anew.
func (b *body) restart() {
	b.began = time.Now()
	b.extend()
}

// extend sets the deadline by what has been read. Where the server's ResponseWriter has
// none, the time is looked at whenever something has come.
func (b *body) extend() {
	earned := time.Duration(float64(len(b.got)) / float64(b.cfg.MinBodyRate) * float64(time.Second))
	deadline := b.began.Add(min(b.cfg.BodyTimeout, bodyGrace+earned))
	if err := b.control.SetReadDeadline(deadline); err != nil && time.Now().After(deadline) {
		b.err = os.ErrDeadlineExceeded
	}
}

// more reads a piece.
func (b *body) more() {
	if len(b.got) == cap(b.got) {
		if b.grow(); b.err != nil {
			return
		}
	}
	n, err := b.src.Read(b.got[len(b.got):cap(b.got)])
	b.got, b.err = b.got[:len(b.got)+n], err
	if err == nil && int64(len(b.got)) < b.most {
		b.extend()
	}
}

// grow makes room: a buffer at first, and then in proportion to what has come and not to what
// was announced, and for no more than that and one byte, by which the end is found.
func (b *body) grow() {
	if b.room == nil {
		b.room = b.buffers.take()
		b.got = b.room.empty()
		return
	}
	if cap(b.got) >= wideBody && !b.wide && b.widen != nil {
		asked := time.Now()
		if b.wide = b.widen(); !b.wide {
			b.crowded, b.err = true, os.ErrDeadlineExceeded
			return
		}
		b.began = b.began.Add(time.Since(asked))
		b.extend()
	}
	room := 2 * cap(b.got)
	if int64(room) > b.most && int64(len(b.got)) <= b.most {
		room = int(b.most) + 1
	}
	b.got = append(make([]byte, 0, room), b.got...)
}

// isBlank reports whether nothing but blanks, or nothing that can be read, is in the
// body. One that is blank for firstRead bytes is left to those who read all of it.
func (b *body) isBlank() bool {
	for b.packed == "" {
		if len(bytes.TrimLeft(b.got, " \t\r\n")) > 0 {
			return false
		}
		if b.err != nil {
			return !isTooLarge(b.err)
		}
		if len(b.got) >= firstRead {
			return false
		}
		b.more()
	}
	return false // nobody unpacks it before the token is known to be right
}

// all reads the rest and returns all of it.
func (b *body) all() ([]byte, error) {
	b.unpack()
	for b.err == nil {
		b.more()
	}
	if b.err != io.EOF {
		return nil, b.err
	}
	if b.control != nil {
		_ = b.control.SetReadDeadline(time.Time{}) // the server watches the connection
	}
	return b.got, nil
}

// unpack reads on through what unpacks a packed body. Of that there is a limit too.
func (b *body) unpack() {
	if b.packed == "" || b.err != nil {
		return
	}
	src, err := unpacker(b.packed, b.src)
	if err != nil {
		b.err = err
		return
	}
	b.src = http.MaxBytesReader(nil, io.NopCloser(src), b.limit)
}

// release gives the memory back. Nothing may refer to what was read from then on.
func (b *body) release() {
	if b.room != nil {
		b.buffers.give(b.room)
	}
}

// leave lets the server read what is left of a body that nobody wants, for a moment.
func (b *body) leave() { _ = b.control.SetReadDeadline(time.Now().Add(drainTime)) }

func isTooLarge(err error) bool {
	var tooLarge *http.MaxBytesError
	return errors.As(err, &tooLarge)
}

// unread says why a body could not be read.
func unread(err error) string {
	var tooLarge *http.MaxBytesError
	var unknown unknownPacking
	var corrupt flate.CorruptInputError
	switch {
	case errors.As(err, &tooLarge):
		return fmt.Sprintf("the body is longer than %d bytes", tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "the body came too slowly"
	case errors.As(err, &unknown):
		return "the body " + unknown.Error()
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return "the body is not gzip, as its Content-Encoding says"
	}
	return "the body could not be read"
}

// buffer is memory that is used again, for the beginning of a body that nobody keeps: most have
// room in it, and what grows beyond it is not kept.
type buffer [firstRead]byte

// buffers are the buffers that nobody has. They are safe for concurrent use.
type buffers struct{ pool sync.Pool }

// take returns a buffer, with anything in it.
func (b *buffers) take() *buffer {
	if had, ok := b.pool.Get().(*buffer); ok {
		return had
	}
	return new(buffer)
}

// give gives a buffer back. Nothing may refer to its bytes from then on.
func (b *buffers) give(had *buffer) { b.pool.Put(had) }

// empty returns the buffer's memory as a slice of length zero.
func (b *buffer) empty() []byte { return b[:0] }

// readAnswer reads all that there is, or one byte more than limit, into the memory of dst
// where there is room, and returns it.
func readAnswer(dst []byte, r io.Reader, limit int64) ([]byte, error) {
	dst = dst[:0]
	for int64(len(dst)) <= limit {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, firstRead)
		}
		room := dst[len(dst):cap(dst)]
		if over := int64(len(room)) - 1 - (limit - int64(len(dst))); over > 0 {
			room = room[:int64(len(room))-over]
		}
		n, err := r.Read(room)
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// packing returns the Content-Encoding of a message in small letters, empty where it is as it is.
func packing(h http.Header) string {
	list := h["Content-Encoding"]
	if len(list) == 0 {
		return ""
	}
	name := strings.ToLower(strings.TrimSpace(strings.Join(list, ",")))
	if name == "identity" {
		return ""
	}
	return name
}

// unknownPacking is the error about a Content-Encoding that is not understood.
type unknownPacking string

func (p unknownPacking) Error() string {
	return fmt.Sprintf("has the Content-Encoding %q: send it as it is, or as gzip", cut([]byte(p), 40))
}

// unpacker returns what src is packed from.
func unpacker(packing string, src io.Reader) (io.Reader, error) {
	if packing != "gzip" && packing != "x-gzip" {
		return nil, unknownPacking(packing)
	}
	return gzip.NewReader(src)
}
