package postgres

// How pgx gets to know arrays. What a list is to the server is not decided here: the plan that pgx
// has for the plain list says what its elements are, and does all that is rare, such as text.

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// arrayPlan encodes arrays of one type as arguments of one type of the server's.
type arrayPlan struct {
	args    *buffer // of the connection
	none    any
	next    pgtype.EncodePlan // of the plain list
	element uint32            // the type of the elements where they go in binary, else 0
}

// planArray is a pgtype.TryWrapEncodePlanFunc of a connection.
func (k *taught) planArray(value any) (plan pgtype.WrappedEncodePlanNextSetter, plain any, ok bool) {
	a, ok := value.(array)
	if !ok {
		return nil, nil, false
	}
	return &arrayPlan{args: &k.args, none: a.none()}, a.plain(), true
}

// SetNext implements pgtype.WrappedEncodePlanNextSetter. How an empty list begins says what its
// elements are; as text it has but two bytes.
func (p *arrayPlan) SetNext(next pgtype.EncodePlan) {
	p.next = next
	if head, err := next.Encode(p.none, nil); err == nil && len(head) == arrayHead {
		p.element = binary.BigEndian.Uint32(head[8:])
	}
}

// Encode implements pgtype.EncodePlan.
func (p *arrayPlan) Encode(value any, buf []byte) ([]byte, error) {
	a := value.(array)
	if p.element != 0 {
		if out, ok := a.encode(p.args.with(buf, a.room()), p.element); ok {
			return out, nil
		}
	}
	return p.next.Encode(a.plain(), buf)
}

// teach has a connection know arrays, once, and returns what is known of it. Whoever calls it has
// the connection for himself, as pgx demands of all that is done with one.
func teach(conn *pgx.Conn) *taught {
	data := conn.PgConn().CustomData()
	if known, ok := data[taughtKey].(*taught); ok {
		return known
	}
	mode := conn.Config().DefaultQueryExecMode
	known := &taught{pipelined: mode == pgx.QueryExecModeCacheStatement || mode == pgx.QueryExecModeCacheDescribe}
	known.knowArrays(conn.TypeMap())
	data[taughtKey] = known
	return known
}

// knowArrays puts planArray in front, as it is for types of our own alone: what a host's values are
// wrapped by stays as it is.
func (k *taught) knowArrays(types *pgtype.Map) {
	types.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{k.planArray}, types.TryWrapEncodePlanFuncs...)
}

// taught is what is known of a connection.
type taught struct {
	pipelined bool   // a batch goes to the server at once, through the buffer by which pgx sends messages
	args      buffer // in which pgx collects the arguments of a statement, until it has copied them into
	sent      buffer // its buffer of messages, until these are sent
}

// buffer is memory for a buffer of pgx, which gives up one that has become large as soon as it has
// no more need of it. Then, and not before, it is used again. A connection keeps two, of mostKept
// bytes each at most.
type buffer []byte

// with is buf with room for n more bytes.
func (b *buffer) with(buf []byte, n int) []byte {
	need := len(buf) + n
	switch {
	case need <= cap(buf):
		return buf
	case need > mostKept:
		return slices.Grow(buf, n)
	case need > cap(*b):
		*b = make([]byte, 0, min(max(need, 2*cap(*b)), mostKept))
	}
	return append((*b)[:0], buf...)
}

const taughtKey = "xxljob arrays"

// makeRoom has the buffer of a connection grow once for all that is about to be sent.
func (k *taught) makeRoom(conn *pgx.Conn, bytes int) {
	// What is closed is left alone: pgx may be sending its last message from a goroutine of its own.
	if k.pipelined && bytes > sendRoom && !conn.IsClosed() {
		conn.PgConn().Frontend().Send(&room{&k.sent, bytes})
	}
}

const (
	sendRoom      = 1024      // bytes that pgx has room for anyway; a greater buffer it gives up once that is sent
	statementRoom = 192       // bytes of a statement beside its arguments
	argRoom       = 6         // bytes beside each: its length and format
	mostKept      = 256 << 10 // bytes of a buffer: the arguments of a thousand starts
)

// room is a message of no bytes, behind which there is room for so many. A trace of the connection
// (pgproto3.Frontend.Trace) shows it as unknown, and of no length.
type room struct {
	in    *buffer
	bytes int
}

// Encode implements pgproto3.Message.
func (r *room) Encode(dst []byte) ([]byte, error) { return r.in.with(dst, r.bytes), nil }

// Decode implements pgproto3.Message.
func (r *room) Decode([]byte) error {
	return errors.New("postgres: a message of no bytes is not received")
}

// Frontend implements pgproto3.FrontendMessage.
func (r *room) Frontend() {}
