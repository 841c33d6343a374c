package alarm

import "fmt"

// Language is the language of texts, as a tag of BCP 47.
type Language string

// The languages that texts are in. Another one takes templates: see [FormatConfig].
const (
	English            Language = "en"
	SimplifiedChinese  Language = "zh-CN"
	TraditionalChinese Language = "zh-TW"
)

// Languages returns the languages that texts are in, English first. The slice is the
// caller's.
func Languages() []Language { return []Language{English, SimplifiedChinese, TraditionalChinese} }

// catalogue has the words of one language. All catalogues have the same keys:
//
//	cause.C  what has happened, in a list        state.S  the state of a run
//	one.C    one event of cause C, as a headline
//	many.C   several of them, with a %d          the rest are words of their own
type catalogue map[string]string

// catalogueOf returns the words of a language, "" being English.
func catalogueOf(l Language) (catalogue, error) {
	switch l {
	case "", English:
		return english(), nil
	case SimplifiedChinese:
		return simplifiedChinese(), nil
	case TraditionalChinese:
		return traditionalChinese(), nil
	}
	return nil, fmt.Errorf("alarm: no texts in language %q: there are %q", l, Languages())
}

// word returns a word, or what stands in for one that no catalogue has.
func (c catalogue) word(key, instead string) string {
	if w, ok := c[key]; ok {
		return w
	}
	return instead
}

// count chooses between the words for one and for several, which take the number.
func (c catalogue) count(one, many string, n int) string {
	if n == 1 {
		return c[one]
	}
	return fmt.Sprintf(c[many], n)
}
