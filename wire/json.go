package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Bounds of what is decoded. Legitimate messages have at most 30 keys and are
// nested 4 deep; the rest is room for keys of later versions, which are ignored.
const (
	maxDepth = 32
	maxKeys  = 256
)

// errEmpty says that there is nothing to read but blanks.
var errEmpty = errors.New("empty")

// value is one JSON value: valid, and without blanks around it. It is never
// empty.
type value []byte

// parse checks that src is one JSON value and nothing else.
func parse(src []byte) (value, error) {
	v := bytes.Trim(src, " \t\r\n")
	if len(v) == 0 {
		return nil, errEmpty
	}
	if !json.Valid(v) {
		return nil, malformed(v)
	}
	return v, nil
}

// decodeObject reads the body of a request, which is an object. Its errors are
// words for the peer.
func decodeObject(src []byte, field func(key string, val value) error) error {
	v, err := parse(src)
	if err == nil {
		err = v.object(field)
	}
	if err != nil {
		return bodyError(err)
	}
	return nil
}

// bodyError puts what is wrong with a body into words.
func bodyError(err error) error {
	if errors.Is(err, errEmpty) {
		return errors.New("the body is empty")
	}
	return fmt.Errorf("the body is not understood: %w", err)
}

// malformed says where v ceases to be JSON.
func malformed(v []byte) error {
	var raw json.RawMessage
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(v, &raw), &syntax) {
		return fmt.Errorf("malformed JSON at byte %d", syntax.Offset)
	}
	return errors.New("malformed JSON")
}

// object calls field for each key of an object, in order, and stops at its first
// error, which it returns with the key before it.
func (v value) object(field func(key string, val value) error) error {
	if v[0] != '{' {
		return fmt.Errorf("%s where an object is expected", v.kind())
	}
	seen := make([]string, 0, 16)
	for i := v.skip(1); v[i] != '}'; {
		end := v.endString(i)
		key, err := v[i:end].word()
		if err != nil {
			return err
		}
		switch {
		case slices.Contains(seen, key):
			return fmt.Errorf("%s is there twice", short(key))
		case len(seen) == maxKeys:
			return fmt.Errorf("more than %d keys", maxKeys)
		}
		seen = append(seen, key)
		i = v.skip(v.skip(end) + 1) // behind the colon
		if end, err = v.end(i); err == nil {
			err = field(key, v[i:end])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", short(key), err)
		}
		i = v.next(end)
	}
	return nil
}

// array calls item for each element of a list, in order, and stops at its first
// error, which it returns with the element's number before it.
func (v value) array(item func(i int, val value) error) error {
	if v[0] != '[' {
		return fmt.Errorf("%s where a list is expected", v.kind())
	}
	for i, n := v.skip(1), 0; v[i] != ']'; n++ {
		end, err := v.end(i)
		if err == nil {
			err = item(n, v[i:end])
		}
		if err != nil {
			return fmt.Errorf("item %d: %w", n, err)
		}
		i = v.next(end)
	}
	return nil
}

// skip returns the place of the first byte from i on that is not blank.
func (v value) skip(i int) int {
	for i < len(v)-1 && (v[i] == ' ' || v[i] == '\t' || v[i] == '\r' || v[i] == '\n') {
		i++
	}
	return i
}

// next returns the place of what follows the element that ends before i: another
// element, or the closing bracket.
func (v value) next(i int) int {
	i = v.skip(i)
	if v[i] == ',' {
		i = v.skip(i + 1)
	}
	return i
}

// endString returns the place behind the string that begins at i.
func (v value) endString(i int) int {
	for i++; v[i] != '"'; i++ {
		if v[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// end returns the place behind the value that begins at i.
func (v value) end(i int) (int, error) {
	for depth := 0; ; {
		switch v[i] {
		case '"':
			i = v.endString(i)
		case '{', '[':
			if depth++; depth > maxDepth {
				return 0, fmt.Errorf("nested more than %d deep", maxDepth)
			}
			i++
		case '}', ']':
			depth--
			i++
		default:
			i = v.endPlain(i)
		}
		if depth == 0 {
			return i, nil
		}
	}
}

// endPlain returns the place behind the number, the word or the separator at i.
func (v value) endPlain(i int) int {
	for i++; i < len(v); i++ {
		switch v[i] {
		case ',', ':', '}', ']', '{', '[', '"', ' ', '\t', '\r', '\n':
			return i
		}
	}
	return i
}

// short bounds a key that is named in an error.
func short(key string) string { return cut([]byte(key), 64) }

// encode appends v as JSON, without the escaping of HTML that Java peers do up to
// 3.1 and left off later. v is always one of the messages, which can be encoded.
func encode(dst []byte, v any) []byte {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // a message with a field that JSON does not have
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
