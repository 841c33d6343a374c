package lang

import (
	"testing"
	"testing/fstest"
)

func load(t *testing.T, en string) *Language {
	t.Helper()
	all, err := Load(fstest.MapFS{"en.json": {Data: []byte(en)}, "zh-CN.json": {Data: []byte(`{}`)}, "zh-TW.json": {Data: []byte(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
	return all["en"]
}

// spoken says in which language it was asked.
type spoken struct{}

func (spoken) In(tag string) string { return "a thing in " + tag }

func TestText(t *testing.T) {
	l := load(t, `{"a": "plain", "b": "{who} has {what} {who}", "c": {"one": "{n} run", "other": "{n} runs"}, "d": {"other": "{n} 次"}}`)
	for _, c := range []struct {
		want, key string
		values    []any
	}{
		{"plain", "a", nil},
		{"plain", "a", []any{"n", 1}},
		{"ann has {who} ann", "b", []any{"who", "ann", "what", "{who}"}}, // a value is no text
		{"1 run", "c", []any{"n", 1}},
		{"0 runs", "c", []any{"n", 0}},
		{"12,345 runs", "c", []any{"n", 12345}},
		{"1 次", "d", []any{"n", 1}},
		{"nothing.here", "nothing.here", nil},
		{"{who} has {what} {who}", "b", []any{"who"}},
		{"ann has a thing in en ann", "b", []any{"who", "ann", "what", spoken{}}},
	} {
		if got := l.Text(c.key, c.values...); got != c.want {
			t.Errorf("Text(%q, %v) = %q, want %q", c.key, c.values, got, c.want)
		}
	}
}

func TestBadCatalogues(t *testing.T) {
	for _, en := range []string{`{`, `{"a": 1}`, `{"a": {"one": "x"}}`} {
		if _, err := Load(fstest.MapFS{"en.json": {Data: []byte(en)}, "zh-CN.json": {Data: []byte(`{}`)}, "zh-TW.json": {Data: []byte(`{}`)}}); err == nil {
			t.Errorf("%s is taken", en)
		}
	}
	if _, err := Load(fstest.MapFS{}); err == nil {
		t.Error("no files are taken")
	}
}

func TestAccepted(t *testing.T) {
	for header, want := range map[string]string{
		"":                                   "",
		"de":                                 "",
		"de, en;q=0.5":                       "en",
		"zh":                                 "zh-CN",
		"zh-SG":                              "zh-CN",
		"zh-Hant":                            "zh-TW",
		"zh-HK":                              "zh-TW",
		"zh-Hans-HK":                         "zh-CN",
		"en-GB,en;q=0.9,zh-TW;q=0.8":         "en",
		"en;q=0.1, zh_TW;q=0.8, zh-CN;q=0.7": "zh-TW",
		"en;q=2, zh;q=x":                     "",
		"en;q=0":                             "",
		"*":                                  "",
	} {
		if got := Accepted(header); got != want {
			t.Errorf("Accepted(%q) = %q, want %q", header, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 12: "12", 123: "123", 1234: "1,234", -1234567: "-1,234,567", 100: "100"} {
		if got := Number(n); got != want {
			t.Errorf("Number(%d) = %q, want %q", n, got, want)
		}
	}
}
