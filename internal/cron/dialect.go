package cron

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// dialectError recognises what other cron libraries write into an expression and this
// module says otherwise: "@every 5m", and a zone in front. The error says how. Anything
// else is nil, and for the parsers to judge.
func dialectError(expr string) error {
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
