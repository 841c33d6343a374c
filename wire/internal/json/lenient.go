package json

// What is no JSON and can mean one thing only, as the readers of Java peers take it.

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"slices"
	"strings"
)

// byteOrderMark is what some editors and libraries begin a text in UTF-8 with.
const byteOrderMark = "\xEF\xBB\xBF"

// mend writes what is no JSON as JSON, where it can mean one thing only. It takes what the
// lenient reader of Gson takes: a byte order mark; raw control characters and ends of lines in
// a string; strings in single quotes or, if they are one word, in none; comments; TRUE and Null;
// = or => for a colon, a semicolon for a comma; an element of a list that is not there, which is
// null. A comma before a closing bracket means nothing, where Gson takes it for one more null
// in a list and refuses it in an object. Only an object or a list is mended: a page of HTML is not
// a word without quotes.
//
// A backslash that begins no escape is malformed, as the text may mean anything. With parts the element
// of the outermost list that has one is null instead, since it is plain where that ends, and broken says
// what the first is. Where it is not plain where an element ends, as of one with a text that has no end,
// nothing behind can be told from it: then the value ends with the element before, and broken is a *CutError.
func mend(src []byte, parts bool) (v Value, broken, err error) {
	src = bytes.TrimPrefix(src, []byte(byteOrderMark))
	m := mender{src: src, out: make([]byte, 0, len(src)+len(src)/8+16), parts: parts}
	ok := m.blanks()
	if ok && m.i == len(src) {
		return nil, nil, ErrEmpty
	}
	ok = ok && m.is("{[") && m.value() && m.blanks() && m.i == len(src)
	if ok && stdjson.Valid(m.out) {
		return m.out, m.broken, nil
	}
	err = fmt.Errorf("malformed JSON at byte %d", min(m.i+1, len(src)))
	if !m.cut || m.whole == 0 {
		return nil, nil, err
	}
	v = m.out[:m.whole]
	for _, closing := range slices.Backward(m.closings) {
		v = append(v, closing)
	}
	if !stdjson.Valid(v) {
		return nil, nil, err
	}
	return v, &CutError{err}, nil
}

// CutError says why the end of a value could not be read, of which ParseParts has the beginning.
type CutError struct{ err error }

func (e *CutError) Error() string { return e.err.Error() }
func (e *CutError) Unwrap() error { return e.err }

// mender reads src from i on and appends to out what it means. Its methods return false where
// that cannot be told; i is about where then.
type mender struct {
	src   []byte
	i     int
	out   []byte
	depth int
	lists int // of these

	parts  bool
	spoilt bool  // the element of the outermost list that m is in is to be null
	broken error // why the first of them is

	open     []byte // what closes the lists and objects that m is in
	whole    int    // how much of out is there up to the last element of the outermost list that was read
	closings []byte // open, at that
	cut      bool   // it cannot be told where the one behind ends
}

// maxGrown is how much longer than twice its source what is mended may be: a text of raw
// control characters takes six times the room, at most, and has it below 256 KiB.
const maxGrown = 1 << 20

// at returns the byte at i, zero at the end.
func (m *mender) at() byte {
	if m.i < len(m.src) {
		return m.src[m.i]
	}
	return 0
}

// is reports whether one of these bytes is at i.
func (m *mender) is(chars string) bool {
	return m.i < len(m.src) && strings.IndexByte(chars, m.src[m.i]) >= 0
}

// blanks passes blanks and comments.
func (m *mender) blanks() bool {
	for m.i < len(m.src) {
		rest := m.src[m.i:]
		end := 0
		switch {
		case m.is(" \t\r\n"):
			m.i++
			continue
		case rest[0] == '#', bytes.HasPrefix(rest, []byte("//")):
			if end = bytes.IndexAny(rest, "\r\n"); end < 0 {
				end = len(rest)
			}
		case bytes.HasPrefix(rest, []byte("/*")):
			if end = bytes.Index(rest[2:], []byte("*/")); end < 0 {
				return false
			}
			end += len("/**/")
		default:
			return true
		}
		m.i += end
	}
	return true
}

// value passes one value.
func (m *mender) value() bool {
	if len(m.out) > 2*len(m.src)+maxGrown {
		return false
	}
	switch m.at() {
	case '{':
		return m.nested('}', m.member)
	case '[':
		return m.nested(']', m.element)
	case '"', '\'':
		return m.text()
	}
	return m.word(false)
}

// nested passes an object or a list, whose parts part passes.
func (m *mender) nested(closing byte, part func() bool) bool {
	if m.depth++; m.depth > 2*maxDepth {
		return false
	}
	if closing == ']' {
		m.lists++
		defer func() { m.lists-- }()
	}
	m.out, m.open = append(m.out, m.at()), append(m.open, closing)
	m.i++
	for n := 0; ; n++ {
		if !m.blanks() {
			return false
		}
		if m.at() == closing {
			m.out = append(m.out, closing)
			m.i++
			m.depth--
			m.open = m.open[:len(m.open)-1]
			return true
		}
		if n > 0 {
			m.out = append(m.out, ',')
		}
		if !part() || !m.blanks() {
			return false
		}
		switch {
		case m.is(",;"):
			m.i++
		case m.at() != closing:
			return false
		}
	}
}

// element passes an element of a list.
func (m *mender) element() bool {
	if m.is(",;") {
		m.out = append(m.out, "null"...)
		return len(m.out) <= 2*len(m.src)+maxGrown
	}
	from, begins := len(m.out), m.i < len(m.src)
	ok := m.value()
	if m.lists != 1 {
		return ok
	}
	m.cut = m.parts && begins && !ok
	if m.spoilt {
		m.out, m.spoilt = append(m.out[:from], "null"...), false
	}
	if ok && m.parts {
		m.whole, m.closings = len(m.out), append(m.closings[:0], m.open...)
	}
	return ok
}

// member passes a key and its value.
func (m *mender) member() bool {
	key := func() bool { return m.word(true) }
	if m.is(`"'`) {
		key = m.text
	}
	if !key() || !m.blanks() || !m.is(":=") {
		return false
	}
	if m.i++; m.src[m.i-1] == '=' && m.at() == '>' {
		m.i++
	}
	m.out = append(m.out, ':')
	return m.blanks() && m.value()
}

// text passes a string in quotes of either kind.
func (m *mender) text() bool {
	quote := m.at()
	m.out = append(m.out, '"')
	for m.i++; m.i < len(m.src); m.i++ {
		switch c := m.src[m.i]; {
		case c == quote:
			m.out = append(m.out, '"')
			m.i++
			return true
		case c == '\\':
			m.i++
			if !m.escape() {
				return false
			}
		case c == '"':
			m.out = append(m.out, '\\', '"')
		default:
			m.char(c)
		}
		if len(m.out) > 2*len(m.src)+maxGrown {
			return false
		}
	}
	return false
}

// escape passes what is behind a backslash.
func (m *mender) escape() bool {
	switch {
	case m.is(`"\/bfnrt`), m.is("u") && m.digits():
		m.out = append(m.out, '\\', m.at())
	case m.is("'\n"):
		m.char(m.at())
	case m.parts && m.lists > 0 && m.i < len(m.src):
		if m.spoilt = true; m.broken == nil {
			m.broken = fmt.Errorf("%q at byte %d is no escape", m.src[m.i-1:m.i+1], m.i)
		}
	default:
		return false
	}
	return true
}

// digits reports whether four hexadecimal ones are behind the byte at i.
func (m *mender) digits() bool {
	behind := m.src[m.i+1:]
	for n := range 4 {
		if n >= len(behind) || strings.IndexByte("0123456789abcdefABCDEF", behind[n]) < 0 {
			return false
		}
	}
	return true
}

// char writes one byte of a string, which is no quote and no backslash.
func (m *mender) char(c byte) {
	switch at := strings.IndexByte("\n\r\t", c); {
	case c >= ' ':
		m.out = append(m.out, c)
	case at >= 0:
		m.out = append(m.out, '\\', "nrt"[at])
	default:
		m.out = fmt.Appendf(m.out, `\u%04x`, c)
	}
}

// word passes what is not in quotes: a number, true, false, null, and everything else as a
// string. A key is always a string.
func (m *mender) word(isKey bool) bool {
	from := m.i
	for m.i < len(m.src) && m.src[m.i] > ' ' && !m.is(`/\;#={}[]:,"'`) {
		m.i++
	}
	word := m.src[from:m.i]
	if len(word) == 0 {
		return false
	}
	if !isKey {
		literals := []string{"true", "false", "null"}
		if i := slices.IndexFunc(literals, func(s string) bool { return strings.EqualFold(s, string(word)) }); i >= 0 {
			m.out = append(m.out, literals[i]...)
			return true
		}
		if stdjson.Valid(word) {
			m.out = append(m.out, word...)
			return true
		}
	}
	m.out = append(m.out, '"')
	m.out = append(m.out, word...)
	m.out = append(m.out, '"')
	return true
}
