package postgres

// Lists as arguments. pgx encodes one by boxing each of its elements, asking for the plan of each,
// and appending to a buffer that grows from 128 bytes by a quarter at a time, and once more to the
// buffer of the connection; a call that is about a thousand rows has a dozen lists. So they go to
// it as types of our own, which write themselves as a whole, and the first of which makes room for
// all that its statement has. They are made where a statement is sent (see send), and are
// copied into pgx's buffers before its call to send them returns.

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xxljob/xxljob/store"
)

// array is a list as an argument.
type array interface {
	// size is how many bytes it has in binary, at most.
	size() int
	// room is for how many bytes there must be room where it begins.
	room() int
	// encode appends it in binary, as a list of elements of a type of the server's. It is not ok
	// where that is for the plan of the plain list to do.
	encode(buf []byte, element uint32) (out []byte, ok bool)
	// plain is the list as pgx knows it, and none an empty one of its type.
	plain() any
	none() any
}

type (
	intArray[T int16 | int32 | int64] []T
	boolArray                         []bool
	textArray                         []string
	nullTextArray                     []*string // nil is null
)

// leadArray is the first array of a statement, and for how many bytes it makes room. The fields
// have names that are shown by a tracer of the host's.
type leadArray[A array] struct {
	List A
	Room int
}

func (l leadArray[A]) size() int { return l.List.size() }
func (l leadArray[A]) room() int { return l.Room }
func (l leadArray[A]) encode(buf []byte, element uint32) ([]byte, bool) {
	return l.List.encode(buf, element)
}
func (l leadArray[A]) plain() any { return l.List.plain() }
func (l leadArray[A]) none() any  { return l.List.none() }

const (
	arrayHead   = 20 // bytes before the first element
	elementHead = 4  // bytes before each: its length
	nullLength  = ^uint32(0)
)

// appendArrayHead begins an array of one dimension, which counts from 1.
func appendArrayHead(buf []byte, element uint32, n int, nulls bool) []byte {
	var has uint32
	if nulls {
		has = 1
	}
	for _, field := range [...]uint32{1, has, element, uint32(n), 1} {
		buf = binary.BigEndian.AppendUint32(buf, field)
	}
	return buf
}

func (a intArray[T]) size() int  { return arrayHead + len(a)*(elementHead+binary.Size(T(0))) }
func (a intArray[T]) room() int  { return a.size() }
func (a intArray[T]) plain() any { return []T(a) }
func (a intArray[T]) none() any  { return []T{} }

func (a intArray[T]) encode(buf []byte, element uint32) ([]byte, bool) {
	buf = appendArrayHead(buf, element, len(a), false)
	switch element {
	case pgtype.Int8OID:
		for _, v := range a {
			buf = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(buf, 8), uint64(v))
		}
	case pgtype.Int4OID:
		for _, v := range a {
			if int64(v) != int64(int32(v)) {
				return nil, false
			}
			buf = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(buf, 4), uint32(v))
		}
	case pgtype.Int2OID:
		for _, v := range a {
			if int64(v) != int64(int16(v)) {
				return nil, false
			}
			buf = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(buf, 2), uint16(v))
		}
	default:
		return nil, false
	}
	return buf, true
}

func (a boolArray) size() int  { return arrayHead + len(a)*(elementHead+1) }
func (a boolArray) room() int  { return a.size() }
func (a boolArray) plain() any { return []bool(a) }
func (a boolArray) none() any  { return []bool{} }

func (a boolArray) encode(buf []byte, element uint32) ([]byte, bool) {
	if element != pgtype.BoolOID {
		return nil, false
	}
	buf = appendArrayHead(buf, element, len(a), false)
	for _, v := range a {
		buf = binary.BigEndian.AppendUint32(buf, 1)
		if v {
			buf = append(buf, 1)
		} else {
			buf = append(buf, 0)
		}
	}
	return buf, true
}

func (a textArray) size() int {
	n := arrayHead + len(a)*elementHead
	for _, text := range a {
		n += len(text)
	}
	return n
}
func (a textArray) room() int  { return a.size() }
func (a textArray) plain() any { return []string(a) }
func (a textArray) none() any  { return []string{} }

func (a textArray) encode(buf []byte, element uint32) ([]byte, bool) {
	if element != pgtype.TextOID {
		return nil, false
	}
	buf = appendArrayHead(buf, element, len(a), false)
	for _, text := range a {
		buf = append(binary.BigEndian.AppendUint32(buf, uint32(len(text))), text...)
	}
	return buf, true
}

func (a nullTextArray) size() int {
	n := arrayHead + len(a)*elementHead
	for _, text := range a {
		if text != nil {
			n += len(*text)
		}
	}
	return n
}
func (a nullTextArray) room() int  { return a.size() }
func (a nullTextArray) plain() any { return []*string(a) }
func (a nullTextArray) none() any  { return []*string{} }

func (a nullTextArray) encode(buf []byte, element uint32) ([]byte, bool) {
	if element != pgtype.TextOID {
		return nil, false
	}
	buf = appendArrayHead(buf, element, len(a), slices.Contains(a, nil))
	for _, text := range a {
		if text == nil {
			buf = binary.BigEndian.AppendUint32(buf, nullLength)
			continue
		}
		buf = append(binary.BigEndian.AppendUint32(buf, uint32(len(*text))), *text...)
	}
	return buf, true
}

// packArrays has the lists among the arguments of a statement be arrays, the first of which makes
// room for all of them. It returns how many bytes the arguments have in binary, at most. Of what
// is packed already nothing changes.
func packArrays(args []any) (size int) {
	first := -1
	for i, arg := range args {
		packed, isNew := asArray(arg)
		if isNew { // others may be reading a statement that is sent again
			args[i] = packed
		}
		switch arg := packed.(type) {
		case array:
			size += arg.size()
			if first < 0 && arg.size() > arrayHead { // one that is nil is null, and writes nothing
				first = i
			}
		case string:
			size += len(arg)
		default:
			size += otherArg
		}
	}
	if size > pgxRoom && first >= 0 {
		if leading := lead(args[first], size); leading != nil {
			args[first] = leading
		}
	}
	return size
}

const (
	otherArg = 16  // bytes of an argument that is no list: a number, a time or a short text
	pgxRoom  = 128 // bytes that pgx has room for, at least, where a statement begins
)

// asArray is a list as an array; what is none, or is one already, stays as it is. A list that is nil
// is null.
func asArray(arg any) (packed any, isNew bool) {
	switch list := arg.(type) {
	case []int64:
		return intArray[int64](list), true
	case []int32:
		return intArray[int32](list), true
	case []int16:
		return intArray[int16](list), true
	case []bool:
		return boolArray(list), true
	case string:
		if !store.CanBeStored(list) {
			return store.PlainText(list), true
		}
	case *string:
		if list != nil && !store.CanBeStored(*list) {
			plain := store.PlainText(*list)
			return &plain, true
		}
	case []string:
		return textArray(plainTexts(list)), true
	case []*string:
		return nullTextArray(plainTextsOrNull(list)), true
	}
	return arg, false
}

// plainTexts are texts as the store keeps them: see store.PlainText. No statement is sent with any
// that the server refuses for what it consists of, whoever has said it: the statement that brings
// it brings others.
func plainTexts(list []string) []string {
	for i, text := range list {
		if !store.CanBeStored(text) {
			list = slices.Clone(list) // it may be the caller's
			for ; i < len(list); i++ {
				list[i] = store.PlainText(list[i])
			}
			break
		}
	}
	return list
}

func plainTextsOrNull(list []*string) []*string {
	for i, text := range list {
		if text != nil && !store.CanBeStored(*text) {
			list = slices.Clone(list)
			for ; i < len(list); i++ {
				if list[i] != nil {
					plain := store.PlainText(*list[i])
					list[i] = &plain
				}
			}
			break
		}
	}
	return list
}

// lead is an array that makes room for so many bytes; nil for one that does already.
func lead(arg any, room int) any {
	switch a := arg.(type) {
	case intArray[int64]:
		return leadArray[intArray[int64]]{a, room}
	case intArray[int32]:
		return leadArray[intArray[int32]]{a, room}
	case intArray[int16]:
		return leadArray[intArray[int16]]{a, room}
	case boolArray:
		return leadArray[boolArray]{a, room}
	case textArray:
		return leadArray[textArray]{a, room}
	case nullTextArray:
		return leadArray[nullTextArray]{a, room}
	}
	return nil
}

// How pgx gets to know arrays. What a list is to the server is not decided here: the plan that pgx
// has for the plain list says what its elements are, and does all that is rare, such as text.

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
	if lacks(conn.PgConn().ParameterStatus("server_encoding")) {
		known.encoding = &encoding{has: map[rune]bool{}}
	}
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
	heading
	encoding  *encoding // nil where the database has every character
	pipelined bool      // a batch goes to the server at once, through the buffer by which pgx sends messages
	args      buffer    // in which pgx collects the arguments of a statement, until it has copied them into
	sent      buffer    // its buffer of messages, until these are sent
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
