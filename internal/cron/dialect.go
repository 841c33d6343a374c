package cron

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// dialectError recognises what other cron libraries write into an expression and this
// module says otherwise: "@every 5m", a zone in front, AWS's "cron(…)"; and signs that only
// look right. The error says how. Anything else is nil, and for the parsers to judge.
func dialectError(expr string) error {
	if err := lookAlike(expr); err != nil {
		return err
	}
	if err := awsError(expr); err != nil {
		return err
	}
	words := strings.Fields(expr)
	if len(words) == 0 {
		return nil
	}
	if strings.EqualFold(words[0], "@every") {
		d := periodOf(strings.Join(words[1:], " "))
		return wholeError(expr, FieldError{Code: codePeriod, Value: "a period", Example: strconv.FormatFloat(d.Seconds(), 'f', -1, 64), Expected: "fields: use " + fixedRate(d)})
	}
	name, zone, ok := strings.Cut(words[0], "=")
	if ok && (strings.EqualFold(name, "CRON_TZ") || strings.EqualFold(name, "TZ")) {
		if zone == "" {
			zone = "Asia/Tokyo"
		}
		return wholeError(expr, FieldError{Code: codeZone, Value: "a zone", Example: shorten(zone), Expected: fmt.Sprintf("fields alone: use .In(%q)", shorten(zone))})
	}
	return nil
}

// periodOf reads a period; of one that makes no sense it is an example.
func periodOf(text string) time.Duration {
	d, err := time.ParseDuration(strings.ToLower(text))
	if err != nil || d <= 0 {
		return 5 * time.Minute
	}
	return d
}

// fixedRate is the Go expression for a schedule with a period.
func fixedRate(d time.Duration) string {
	n, unit := d.Nanoseconds(), "Nanosecond" // refused as well, in its own words
	for _, u := range []struct {
		unit string
		d    time.Duration
	}{{"Hour", time.Hour}, {"Minute", time.Minute}, {"Second", time.Second}, {"Millisecond", time.Millisecond}} {
		if d%u.d == 0 {
			n, unit = int64(d/u.d), u.unit
			break
		}
	}
	return fmt.Sprintf("xxljob.FixedRate(%d*time.%s)", n, unit)
}

// lookAlike names the first sign that looks like one of an expression, or like none, and is
// another: what input methods, word processors and web pages make of them.
func lookAlike(expr string) error {
	n := 0
	for _, r := range expr {
		n++
		meant, known := meantBy(r)
		if !known {
			continue
		}
		code, want := codeSign, strconv.Quote(meant)
		switch meant {
		case " ":
			code, want = codeBlank, "an ordinary blank"
		case "":
			code, want = codeUnseen, "nothing there"
		}
		return wholeError(expr, FieldError{Code: code, Value: string(r), Count: n, Example: meant, Expected: want})
	}
	return nil
}

// meantBy is the sign of an expression that another one stands for, "" for one that is not
// seen, and whether it is such a sign at all.
func meantBy(r rune) (string, bool) {
	switch {
	case r == ' ' || r == '\t' || r == '\n' || r == '\r' || r > ' ' && r < 0x7f:
		return "", false
	case r >= 0xff01 && r <= 0xff5e: // full width
		return string(r - 0xff01 + '!'), true
	case unicode.IsSpace(r):
		return " ", true
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
		return "", true
	case unicode.Is(unicode.Pd, r), r == '\u2212': // dashes, and minus
		return "-", true
	}
	switch r {
	case '、', '،', '‚':
		return ",", true
	case '∗', '⁎', '✱', '﹡':
		return "*", true
	case '⁄', '∕':
		return "/", true
	case '﹖':
		return "?", true
	case '﹟':
		return "#", true
	}
	return "", false
}

// awsError says what AWS's "cron(…)", "rate(…)" and "at(…)" are here. Its fields are Quartz's
// without the seconds.
func awsError(expr string) error {
	word, inside, ok := strings.Cut(strings.TrimSpace(expr), "(")
	if !ok {
		return nil
	}
	inside = strings.TrimSpace(strings.TrimSuffix(inside, ")"))
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "cron":
		example := "0 " + shorten(inside)
		if n := len(strings.Fields(inside)); n != 6 {
			example = "0 0 10 * * ? *"
		}
		return wholeError(expr, FieldError{Code: codeAWS, Value: "AWS's cron(…)", Example: example, Expected: fmt.Sprintf("fields alone, and seconds before them: use xxljob.Cron(%q)", example)})
	case "rate":
		d := awsPeriod(inside)
		return wholeError(expr, FieldError{Code: codePeriod, Value: "a period", Example: strconv.FormatFloat(d.Seconds(), 'f', -1, 64), Expected: "fields: use " + fixedRate(d)})
	case "at":
		return wholeError(expr, FieldError{Code: codeMoment, Value: "a moment", Expected: "fields: use xxljob.At"})
	}
	return nil
}

// awsPeriod reads "5 minutes"; of a text that makes no sense it is an example.
func awsPeriod(text string) time.Duration {
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(number)
	each := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}[strings.TrimSuffix(strings.ToLower(strings.TrimSpace(unit)), "s")]
	if err != nil || n <= 0 || n > 100_000 || each == 0 {
		return 5 * time.Minute
	}
	return time.Duration(n) * each
}
