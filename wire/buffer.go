package wire

import (
	"io"
	"slices"
	"sync"
)

// buffer is memory that is used again, for bodies that nobody keeps.
type buffer struct{ bytes []byte }

const (
	// newBuffer is how much memory, in bytes, a buffer has at first: most answers, and many
	// requests, are shorter.
	newBuffer = 1 << 10
	// mostKept is the most memory, in bytes, that is kept for the next time.
	mostKept = 64 << 10
)

var buffers = sync.Pool{New: func() any { return &buffer{make([]byte, 0, newBuffer)} }}

// takeBuffer returns an empty buffer. It is safe for concurrent use.
func takeBuffer() *buffer { return buffers.Get().(*buffer) }

// release gives a buffer back. Nothing may refer to its bytes from then on.
func (b *buffer) release() {
	if cap(b.bytes) <= mostKept {
		b.bytes = b.bytes[:0]
		buffers.Put(b)
	}
}

// readAnswer reads all that there is, or one byte more than limit, into the memory of dst
// where there is room, and returns it.
func readAnswer(dst []byte, r io.Reader, limit int64) ([]byte, error) {
	dst = dst[:0]
	for int64(len(dst)) <= limit {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, newBuffer)
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
