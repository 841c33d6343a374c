package wire

import (
	"io"
	"slices"
	"sync"
)

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
