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
	none    any
	next    pgtype.EncodePlan // of the plain list
	element uint32            // the type of the elements where they go in binary, else 0
}

// planArray implements pgtype.TryWrapEncodePlanFunc.
func planArray(value any) (plan pgtype.WrappedEncodePlanNextSetter, plain any, ok bool) {
	a, ok := value.(array)
	if !ok {
		return nil, nil, false
	}
	return &arrayPlan{none: a.none()}, a.plain(), true
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
		if out, ok := a.encode(slices.Grow(buf, a.room()), p.element); ok {
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
	knowArrays(conn.TypeMap())
	mode := conn.Config().DefaultQueryExecMode
	known := &taught{pipelined: mode != pgx.QueryExecModeExec && mode != pgx.QueryExecModeSimpleProtocol}
	data[taughtKey] = known
	return known
}

// knowArrays puts planArray in front, as it is for types of our own alone: what a host's values are
// wrapped by stays as it is.
func knowArrays(types *pgtype.Map) {
	types.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{planArray}, types.TryWrapEncodePlanFuncs...)
}

// taught is what is known of a connection.
type taught struct {
	pipelined bool // a batch goes to the server through its buffer, by which pgx sends messages
}

const taughtKey = "xxljob arrays"

// makeRoom has the buffer of a connection grow once for all that is about to be sent.
func (k *taught) makeRoom(conn *pgx.Conn, bytes int) {
	// What is closed is left alone: pgx may be sending its last message from a goroutine of its own.
	if k.pipelined && bytes > sendRoom && !conn.IsClosed() {
		conn.PgConn().Frontend().Send(room(bytes))
	}
}

const (
	sendRoom      = 1024 // bytes that pgx has room for anyway; a greater buffer it gives up once that is sent
	statementRoom = 192  // bytes of a statement beside its arguments
	argRoom       = 6    // bytes beside each: its length and format
)

// room is a message of no bytes, behind which there is room for so many. A trace of the connection
// (pgproto3.Frontend.Trace) shows it as unknown, and of no length.
type room int

// Encode implements pgproto3.Message.
func (n room) Encode(dst []byte) ([]byte, error) { return slices.Grow(dst, int(n)), nil }

// Decode implements pgproto3.Message.
func (n room) Decode([]byte) error {
	return errors.New("postgres: a message of no bytes is not received")
}

// Frontend implements pgproto3.FrontendMessage.
func (n room) Frontend() {}
