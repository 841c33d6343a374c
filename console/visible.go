package console

// Text of others on a page: what could hide something is made visible.

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// visibleText is a text in which each character is seen, but for what ends lines: those that are
// not, and those that change the direction of what follows, are shown by their number.
func visibleText(s string) string {
	if !strings.ContainsFunc(s, hides) && strings.ToValidUTF8(s, "") == s {
		return s
	}
	var b strings.Builder
	for _, r := range s { // what is no UTF-8 becomes U+FFFD
		if hides(r) {
			b.WriteString("⟨U+" + strings.ToUpper(hex4(r)) + "⟩")
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hides reports whether a character is not seen, or changes how others are.
func hides(r rune) bool {
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

// visibleFit is how many bytes of a text take at most so many in a page; what it ends with is whole.
func visibleFit(s string, most int) int {
	for i, r := range s {
		if most -= widthInPage(r); most < 0 {
			return i
		}
	}
	return len(s)
}

// widthInPage is how many bytes a character takes in a page.
func widthInPage(r rune) int {
	switch {
	case hides(r):
		return len("⟨U+200B⟩")
	case strings.ContainsRune(`"'&<>+`, r):
		return len("&#34;")
	}
	return utf8.RuneLen(r)
}
