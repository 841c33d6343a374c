package json

// How messages are written.

import (
	"bytes"
	stdjson "encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Writer writes one JSON object, with the bytes that Encode has. It is for the messages of
// every run; the rest are left to Encode.
type Writer struct{ dst []byte }

// WriteObject begins an object behind dst.
func WriteObject(dst []byte) Writer { return Writer{append(dst, '{')} }

// End returns all that is written.
func (w *Writer) End() []byte { return append(w.dst, '}') }

// key writes a key, which has no characters to escape.
func (w *Writer) key(key string) {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(w.dst, '"')
	w.dst = append(w.dst, key...)
	w.dst = append(w.dst, '"', ':')
}

// Number writes a number.
func (w *Writer) Number(key string, n int64) {
	w.key(key)
	w.dst = strconv.AppendInt(w.dst, n, 10)
}

// Text writes a text.
func (w *Writer) Text(key, s string) {
	w.key(key)
	w.dst = appendText(w.dst, s)
}

// NumberIf writes a number unless it is zero.
func (w *Writer) NumberIf(key string, n int64) {
	if n != 0 {
		w.Number(key, n)
	}
}

// TextIf writes a text unless it is empty.
func (w *Writer) TextIf(key, s string) {
	if s != "" {
		w.Text(key, s)
	}
}

// TextOrNull writes a text, or null for an empty one.
func (w *Writer) TextOrNull(key, s string) {
	if s != "" {
		w.Text(key, s)
		return
	}
	w.key(key)
	w.dst = append(w.dst, "null"...)
}

// FlagIf writes a flag that is set.
func (w *Writer) FlagIf(key string, set bool) {
	if set {
		w.key(key)
		w.dst = append(w.dst, "true"...)
	}
}

// Open begins an object below a key, which Close ends.
func (w *Writer) Open(key string) {
	w.key(key)
	w.dst = append(w.dst, '{')
}

// Close ends the object that Open has begun.
func (w *Writer) Close() { w.dst = append(w.dst, '}') }

// ValueIf writes what Encode makes of a value, if there is one.
func (w *Writer) ValueIf(key string, is bool, v any) {
	if is {
		w.key(key)
		w.dst = Encode(w.dst, v)
	}
}

// appendText appends a string as Encode does, which is asked where something has to be
// escaped.
func appendText(dst []byte, s string) []byte {
	if !isPlain(s) {
		return Encode(dst, s)
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// isPlain reports whether JSON has a string as it is.
func isPlain(s string) bool {
	ascii := true
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c == '"', c == '\\':
			return false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return ascii || utf8.ValidString(s) && !strings.ContainsAny(s, "\u2028\u2029")
}

// Encode appends v as JSON, without the escaping of HTML that Java peers do up to
// 3.1 and left off later. v is always one of the messages, which can be encoded.
func Encode(dst []byte, v any) []byte {
	buf := bytes.NewBuffer(dst)
	enc := stdjson.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // a message with a field that JSON does not have
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
