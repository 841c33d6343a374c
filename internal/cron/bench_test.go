package cron

import (
	"testing"
	"time"
)

// commonExpressions are the schedules people write, and the two sparse ones
// that make naive searches slow.
var commonExpressions = []string{
	"* * * * * ?",
	"0/15 * * * * ?",
	"0 0/5 14 * * ?",
	"0 0 12 * * ?",
	"0 15 10 ? * MON-FRI",
	"0 0 0 1 1 ?",
	"0 15 10 L * ?",
	"0 15 10 ? * FRI#3",
	"0 0 0 29 2 ?",
	"0 0 12 ? 2 SUN#5",
	"0 0 0 30 2 ?",
}

func BenchmarkNext(b *testing.B) {
	from := time.Date(2026, 1, 15, 10, 20, 30, 0, time.UTC)
	for _, zoneName := range []string{"UTC", "Europe/Berlin", "America/New_York"} {
		loc := zone(b, zoneName)
		for _, text := range commonExpressions {
			expr, err := Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(zoneName+"/"+text, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					expr.Next(from, loc, Civil)
				}
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("0 15 10 ? * MON-FRI"); err != nil {
			b.Fatal(err)
		}
	}
}

// commonCrontabs are common schedules too, with the sparse and the impossible ones.
var commonCrontabs = []string{
	"* * * * *",
	"*/5 * * * *",
	"15 10 * * 1-5",
	"0 0 1 1 *",
	"0 0 13 * 5",
	"0 0 L * *",
	"@daily",
	"0 0 29 2 *",
	"0 0 */28 2 1",
	"0 0 30 2 *",
}

func BenchmarkCrontabNext(b *testing.B) {
	from := time.Date(2026, 1, 15, 10, 20, 30, 0, time.UTC)
	loc := zone(b, "Europe/Berlin")
	for _, text := range commonCrontabs {
		tab, err := ParseCrontab(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tab.Next(from, loc, Civil)
			}
		})
	}
}

func BenchmarkSecondOpinion(b *testing.B) {
	now := time.Date(2026, 1, 15, 10, 20, 30, 0, time.UTC)
	loc := zone(b, "Europe/Berlin")
	for _, text := range append(commonCrontabs[:5:5], "0 8-18/2 1,15,L * MON-FRI,0#2") {
		tab, err := ParseCrontab(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tab.SecondOpinion(now, loc)
			}
		})
	}
}
