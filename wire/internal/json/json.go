// Package json reads and writes the messages of the protocol: as leniently as the Java peers do,
// within bounds, with errors that are words for the peer, and for the messages of every run
// without reflection. What is not on the way of each run is left to encoding/json.
package json

// Values, objects and lists: where what is read begins and ends.

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of what is decoded. Legitimate messages have at most 30 keys and are
// nested 4 deep; the rest is room for keys of later versions, which are ignored.
const (
	maxDepth = 32
	maxKeys  = 256
)

// ErrEmpty says that there is nothing to read but blanks.
var ErrEmpty = errors.New("empty")

// Value is one JSON value: valid, and without blanks around it. It is never
// empty.
type Value []byte

// Parse reads src, which is one value and nothing else: as JSON, or else as what mend takes.
func Parse(src []byte) (Value, error) {
	v, _, err := parse(src, false)
	return v, err
}

// ParseParts is Parse where parts of a list count by themselves: elements in which a text has what is no
// escape are null, and broken says what the first is. Where the end of one is not plain, the value has those
// before it, and broken is a *CutError.
func ParseParts(src []byte) (v Value, broken, err error) { return parse(src, true) }

func parse(src []byte, parts bool) (v Value, broken, err error) {
	v = bytes.Trim(src, " \t\r\n")
	switch {
	case len(v) == 0:
		return nil, nil, ErrEmpty
	case !stdjson.Valid(v):
		return mend(v, parts)
	}
	return v, nil, nil
}

// Object calls field for each key of an object, in order, and stops at its first
// error, which it returns with the key before it.
func (v Value) Object(field func(key string, val Value) error) error {
	if v[0] != '{' {
		return fmt.Errorf("%s where an object is expected", v.kind())
	}
	seen := make([]string, 0, 16)
	for i := v.skip(1); v[i] != '}'; {
		end := v.endString(i)
		key, err := v[i:end].Word()
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

// Array calls item for each element of a list, in order, and stops at its first
// error, which it returns with the element's number before it.
func (v Value) Array(item func(i int, val Value) error) error {
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
func (v Value) skip(i int) int {
	for i < len(v)-1 && (v[i] == ' ' || v[i] == '\t' || v[i] == '\r' || v[i] == '\n') {
		i++
	}
	return i
}

// next returns the place of what follows the element that ends before i: another
// element, or the closing bracket.
func (v Value) next(i int) int {
	i = v.skip(i)
	if v[i] == ',' {
		i = v.skip(i + 1)
	}
	return i
}

// endString returns the place behind the string that begins at i.
func (v Value) endString(i int) int {
	for i++; v[i] != '"'; i++ {
		if v[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// end returns the place behind the value that begins at i.
func (v Value) end(i int) (int, error) {
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
func (v Value) endPlain(i int) int {
	for i++; i < len(v); i++ {
		switch v[i] {
		case ',', ':', '}', ']', '{', '[', '"', ' ', '\t', '\r', '\n':
			return i
		}
	}
	return i
}

// short bounds a key that is named in an error.
func short(key string) string { return strings.ToValidUTF8(key[:min(len(key), 64)], "\uFFFD") }
