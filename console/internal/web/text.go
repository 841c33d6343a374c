package web

// Text of others on a page: what could hide something is made visible.

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible is a text in which each character is seen, but for what ends lines: those that are
// not, and those that change the direction of what follows, are shown by their number.
func Visible(s string) string {
	if !strings.ContainsFunc(s, Hides) && strings.ToValidUTF8(s, "") == s {
		return s
	}
	var b strings.Builder
	for _, r := range s { // what is no UTF-8 becomes U+FFFD
		if Hides(r) {
			b.WriteString("⟨U+" + strings.ToUpper(hex4(r)) + "⟩")
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Hides reports whether a character is not seen, or changes how others are.
func Hides(r rune) bool {
	if ' ' <= r && r <= '~' { // most are
		return false
	}
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Co, r) ||
		r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0' || r != ' ' && unicode.Is(unicode.Zs, r) && r != '\u3000' && r != '\u00a0')
}

func hex4(r rune) string {
	const digits = "0123456789abcdef"
	s := ""
	for r > 0 || len(s) < 4 {
		s = string(digits[r&15]) + s
		r >>= 4
	}
	return s
}

// VisibleFit is how many bytes of a text take at most so many in a page; what it ends with is whole.
func VisibleFit(s string, most int) int {
	for i, r := range s {
		if most -= WidthInPage(r); most < 0 {
			return i
		}
	}
	return len(s)
}

// WidthInPage is how many bytes a character takes in a page.
func WidthInPage(r rune) int {
	switch {
	case Hides(r):
		return len("⟨U+200B⟩")
	case strings.ContainsRune(`"'&<>+`, r):
		return len("&#34;")
	}
	return utf8.RuneLen(r)
}

// CutTo is a text in at most so many characters.
func CutTo(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + "…"
		}
	}
	return text
}
