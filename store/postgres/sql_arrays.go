package postgres

// Lists as arguments. pgx encodes one by boxing each of its elements, asking for the plan of each,
// and appending to a buffer that grows from 128 bytes by a quarter at a time, and once more to the
// buffer of the connection; a call that is about a thousand rows has a dozen lists. So they go to
// it as types of our own, which write themselves as a whole, and the first of which makes room for
// all that its statement has. They are made where a statement is sent (see send), and
// arrayplan.go has how pgx gets to know them. They are copied into its buffers before its call to
// send them returns.

import (
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
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
	case []string:
		return textArray(list), true
	case []*string:
		return nullTextArray(list), true
	}
	return arg, false
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
