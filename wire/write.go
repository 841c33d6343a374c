package wire

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// writer writes one JSON object, with the bytes that encode has. It is for the messages of
// every run; the rest are left to encode.
type writer struct{ dst []byte }

// writeObject begins an object behind dst.
func writeObject(dst []byte) writer { return writer{append(dst, '{')} }

// end returns all that is written.
func (w *writer) end() []byte { return append(w.dst, '}') }

// key writes a key, which has no characters to escape.
func (w *writer) key(key string) {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(w.dst, '"')
	w.dst = append(w.dst, key...)
	w.dst = append(w.dst, '"', ':')
}

func (w *writer) number(key string, n int64) {
	w.key(key)
	w.dst = strconv.AppendInt(w.dst, n, 10)
}

func (w *writer) text(key, s string) {
	w.key(key)
	w.dst = appendText(w.dst, s)
}

// numberIf writes a number unless it is zero.
func (w *writer) numberIf(key string, n int64) {
	if n != 0 {
		w.number(key, n)
	}
}

// textIf writes a text unless it is empty.
func (w *writer) textIf(key, s string) {
	if s != "" {
		w.text(key, s)
	}
}

// textOrNull writes a text, or null for an empty one.
func (w *writer) textOrNull(key, s string) {
	if s != "" {
		w.text(key, s)
		return
	}
	w.key(key)
	w.dst = append(w.dst, "null"...)
}

// flagIf writes a flag that is set.
func (w *writer) flagIf(key string, set bool) {
	if set {
		w.key(key)
		w.dst = append(w.dst, "true"...)
	}
}

// valueIf writes what encode makes of a value, if there is one.
func (w *writer) valueIf(key string, is bool, v any) {
	if is {
		w.key(key)
		w.dst = encode(w.dst, v)
	}
}

// appendText appends a string as encode does, which is asked where something has to be
// escaped.
func appendText(dst []byte, s string) []byte {
	if !isPlain(s) {
		return encode(dst, s)
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
