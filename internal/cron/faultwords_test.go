package cron

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFaultsInLanguages: what a reader of each language would be told of each kind of fault.
func TestFaultsInLanguages(t *testing.T) {
	tests := []struct {
		expr       string
		dialect    dialect
		en, cn, tw string
	}{
		{"0 60 * * * ?", quartz, `field 2 (minutes) has "60", expected a minute from 0 to 59`, "第 2 段（分）“60”有误：应为 0 至 59", "第 2 段（分）「60」有誤：應為 0 至 59"},
		{"0 0 0 1 13 ?", quartz, `field 5 (month) has "13", expected a month from 1 to 12 or a name such as JAN`, "第 5 段（月）“13”有误：应为 1 至 12，或英文缩写（如 JAN）", "第 5 段（月）「13」有誤：應為 1 至 12，或英文縮寫（如 JAN）"},
		{"0 1,,2 * * * ?", quartz, `field 2 (minutes) has "", expected a value between the commas`, "第 2 段（分）有误：逗号之间缺少取值", "第 2 段（分）有誤：逗號之間缺少取值"},
		{"0 */0 * * * ?", quartz, `field 2 (minutes) has "*/0", expected a step from 1 to 59`, "第 2 段（分）“*/0”有误：“/”后的步长应为 1 至 59", "第 2 段（分）「*/0」有誤：「/」後的間隔應為 1 至 59"},
		{"* * * * *", quartz, "it has 5 fields, expected 6 or 7: seconds minutes hours day-of-month month day-of-week [year]; the five fields and the tags of crontab have a type of their own, CRONTAB", "表达式有 5 段，应为 6 或 7 段：秒 分 时 日 月 周 [年]；如使用 crontab 的五段写法或 @ 标签，请选择 CRONTAB 类型", "運算式有 5 段，應為 6 或 7 段：秒 分 時 日 月 週 [年]；如使用 crontab 的五段寫法或 @ 標籤，請選擇 CRONTAB 類型"},
		{"@every 90s", crontabFive, "it has a period: that is the type FIX_RATE, with 90 seconds", "表达式写的是时间间隔：请选择固定速度（FIX_RATE），间隔 90 秒", "運算式寫的是時間間隔：請選擇固定速度（FIX_RATE），間隔 90 秒"},
		{"CRON_TZ=Asia/Tokyo 0 3 * * *", crontabFive, "it begins with a zone, which has a field of its own: Asia/Tokyo", "表达式以时区开头：请将 Asia/Tokyo 填入“时区”", "運算式以時區開頭：請將 Asia/Tokyo 填入「時區」"},
		{"* * ? * *", crontabFive, `field 3 (day-of-month) has "?", expected a day from 1 to 31; ? is Quartz's, here write *`, "第 3 段（日）“?”有误：“?”是 Quartz 的写法，此处应写“*”", "第 3 段（日）「?」有誤：「?」是 Quartz 的寫法，此處應寫「*」"},
	}
	for _, tt := range tests {
		bad := (&badExpression{expr: tt.expr, dialect: tt.dialect}).parse(t)
		if en, cn, tw := bad.In("en"), bad.In("zh-CN"), bad.In("zh-TW"); en != tt.en || cn != tt.cn || tw != tt.tw {
			t.Errorf("%s:\n%s\n%s\n%s\nwant\n%s\n%s\n%s", tt.expr, en, cn, tw, tt.en, tt.cn, tt.tw)
		}
		if got := bad.In("fr"); got != tt.en {
			t.Errorf("%s: %q in a language that is not there", tt.expr, got)
		}
	}
}

// TestEveryFaultHasWords: whatever is wrong with an expression is said whole in each language,
// and every code of the table is some expression's.
func TestEveryFaultHasWords(t *testing.T) {
	seen := map[string]bool{}
	for _, tt := range badExpressions() {
		bad := tt.parse(t)
		checkWords(t, bad)
		seen[bad.Code] = true
	}
	table := slices.Sorted(maps.Keys(faultTexts()))
	if found := slices.Sorted(maps.Keys(seen)); !slices.Equal(found, table) {
		t.Errorf("faults are\n%q, the table has\n%q", found, table)
	}
	for code, texts := range faultTexts() {
		for i, text := range texts {
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s has no text %d", code, i)
			}
		}
	}
}

var (
	// What is the same in all languages: names of types, tags, and letters of expressions.
	everywhere = regexp.MustCompile(`AWS|CRON_SECONDS|Spring|cron\(…\)|ONCE|CRONTAB|CRON|FIX_RATE|Quartz|crontab|@hourly|@daily|JAN|SUN|L-nW|L-n|LW|L|W|n`)
	latin      = regexp.MustCompile(`[A-Za-z]+`)
	// Characters of one script that the texts of the other must not have.
	simplified  = regexp.MustCompile(`[误应为时个后写长选类范围标签两须缩开头请将区单独终点号间数处与并]`)
	traditional = regexp.MustCompile(`[誤應為時個後寫長選類範圍標籤兩須縮開頭請將區單獨終點號間數處與並]`)
	han         = regexp.MustCompile(`\p{Han}`)
)

// checkWords checks what is said of a fault in each language, but for what it quotes.
func checkWords(t *testing.T, bad *FieldError) {
	t.Helper()
	own := func(tag string) string {
		value, example := Quoted(bad.Value), Quoted(bad.Example)
		return strings.NewReplacer(`"`+value+`"`, "", "“"+value+"”", "", "「"+value+"」", "", " "+example, " ").Replace(bad.In(tag))
	}
	if en := own("en"); en == "" || strings.ContainsAny(en, "{}") || strings.Contains(en, "xxljob") {
		t.Errorf("%q: %q in English", bad.Expr, en)
	}
	for tag, other := range map[string]*regexp.Regexp{"zh-CN": traditional, "zh-TW": simplified} {
		text := own(tag)
		if word := latin.FindString(everywhere.ReplaceAllString(text, "")); word != "" || strings.ContainsAny(text, "{}") {
			t.Errorf("%q: %s says %q in %q", bad.Expr, tag, word, text)
		}
		if other.MatchString(text) || !han.MatchString(text) {
			t.Errorf("%q: %s is %q", bad.Expr, tag, text)
		}
	}
}
