package cron

import (
	"fmt"
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
		return wholeError(expr, "a period", "fields: use "+fixedRate(strings.Join(words[1:], " ")))
	}
	name, zone, ok := strings.Cut(words[0], "=")
	if ok && (strings.EqualFold(name, "CRON_TZ") || strings.EqualFold(name, "TZ")) {
		if zone == "" {
			zone = "Asia/Tokyo"
		}
		return wholeError(expr, "a zone", fmt.Sprintf("fields alone: use .In(%q)", shorten(zone)))
	}
	return nil
}

// fixedRate is the Go expression for a schedule with a period; of one that makes no sense,
// an example.
func fixedRate(period string) string {
	d, err := time.ParseDuration(strings.ToLower(period))
	if err != nil || d <= 0 {
		d = 5 * time.Minute
	}
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
