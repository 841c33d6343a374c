package finding

import (
	"strings"
	"unicode"
)

// Signature is an error without what differs from run to run: its first line, at most 200
// characters, in which numbers, addresses, ids in hexadecimal digits, and what stands in quotation
// marks, are replaced by #. Errors of one cause have one signature.
func Signature(text string) string {
	text = firstLine(text)
	var s strings.Builder
	for i, word := range strings.Fields(text) {
		if i > 0 {
			s.WriteByte(' ')
		}
		s.WriteString(plain(word))
	}
	return collapse(shorten(s.String(), 200))
}

// plain is a word in which what differs is a #. The signs about it stay.
func plain(word string) string {
	bare := strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if bare == "" {
		return word
	}
	at := strings.Index(word, bare)
	before, after := word[:at], word[at+len(bare):]
	if quoted := strings.ContainsAny(before, "\"'`") && strings.ContainsAny(after, "\"'`"); quoted || varies(bare) {
		return before + "#" + after
	}
	return word
}

// varies reports whether a word is one of those that differ: it has a digit, but for a short word
// that is a name with a number, as "utf8" or "http2" are.
func varies(word string) bool {
	digits, letters := 0, 0
	for _, r := range word {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
		}
	}
	if digits == 0 {
		return false
	}
	return letters == 0 || digits > 1 || len(word) > 8
}

// collapse makes one # of several that follow each other, with whatever signs are between them.
func collapse(s string) string {
	for _, twice := range []string{"# #", "#, #", "#:#", "##"} {
		for strings.Contains(s, twice) {
			s = strings.ReplaceAll(s, twice, "#")
		}
	}
	return s
}

func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(text)
}

// shorten cuts a text to so many characters.
func shorten(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + "…"
		}
	}
	return text
}
