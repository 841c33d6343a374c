package alarm

import (
	"fmt"
	"strings"
	"time"
)

// View is what templates are executed with: a message that Clean has made safe, and words
// for it in the language of the format. Its fields are those of Message and the ones here;
// a template may say {{.JobName}}, {{.Headline}}, {{.Time .Last}} or
// {{range .Events}}{{$.StateName .State}}: {{.Text}}{{end}}.
type View struct {
	Message
	// Headline says what has happened in a few words: "3 runs failed".
	Headline string
	// Link is what FormatConfig.Link returned, an address of http or https, or "".
	Link string

	words    catalogue
	location *time.Location
}

func newView(m Message, words catalogue, location *time.Location) View {
	v := View{Message: Clean(m), words: words, location: location}
	v.Headline = v.headline()
	return v
}

// headline counts what is of one cause. Of a message for more than it lists, nobody knows
// of what causes the others were; good news are not counted.
func (v View) headline() string {
	mixed := v.Count > max(len(v.Events), 1)
	for _, e := range v.Events {
		mixed = mixed || e.Cause != v.Cause
	}
	_, known := v.words["one."+string(v.Cause)]
	switch {
	case v.Cause == Recovered && mixed:
		return v.words["one.recovered"]
	case v.Count == 1 && !known:
		return v.CauseName(v.Cause)
	case mixed || !known:
		return fmt.Sprintf(v.words["mixed"], v.Count, v.CauseName(v.Cause))
	}
	return v.words.count("one."+string(v.Cause), "many."+string(v.Cause), v.Count)
}

// Good reports whether the message is good news: that a job has recovered, or a trouble is over.
func (v View) Good() bool { return v.Cause.Good() }

// Good reports whether a cause is good news: Recovered and TroubleOver are.
func (c Cause) Good() bool { return c == Recovered || c == TroubleOver }

// Job names the job: "nightly report (billing/nightly)". Of a message about none it is "".
func (v View) Job() string {
	if v.JobKey == "" && v.JobID == 0 && v.Trouble != "" {
		return ""
	}
	key := v.App + "/" + v.JobKey
	if v.JobKey == "" {
		key = fmt.Sprintf("%s/#%d", v.App, v.JobID)
	}
	if v.JobName == "" || v.JobName == v.JobKey {
		return key
	}
	return v.JobName + " (" + key + ")"
}

// Time writes a time in the format's location, with its offset, as in
// "2026-03-01 09:30:00 +08:00"; "-" for no time.
func (v View) Time(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.In(v.location).Format("2006-01-02 15:04:05 -07:00")
}

// CauseName is a cause in the language of the format.
func (v View) CauseName(c Cause) string { return v.words.word("cause."+string(c), string(c)) }

// StateName is the state of a run in the language of the format.
func (v View) StateName(s string) string { return v.words.word("state."+s, s) }

// Details says of an event which run it happened to, and is "" where it is about none:
// "run 123, timed out, attempt 2, scheduled for 2026-03-01 09:30:00 +08:00".
func (v View) Details(e Event) string {
	var parts []string
	if e.RunID != 0 {
		parts = append(parts, fmt.Sprintf(v.words["run"], e.RunID))
	}
	if e.State != "" {
		parts = append(parts, v.StateName(e.State))
	}
	if e.RunID != 0 {
		parts = append(parts, fmt.Sprintf(v.words["attempt"], e.Attempt+1))
	}
	if !e.Instant.IsZero() {
		parts = append(parts, fmt.Sprintf(v.words["instant"], v.Time(e.Instant)))
	}
	return strings.Join(parts, v.words["comma"])
}

// Earlier says how many events the message stands for beside those in Events, and is "" for
// none: "and 290 earlier events".
func (v View) Earlier() string {
	n := v.Count - len(v.Events)
	if n <= 0 || len(v.Events) == 0 {
		return ""
	}
	return v.words.count("earlier.one", "earlier.many", n)
}

// Word is a word of the format's language that the built-in templates use: "job",
// "happened", "first", "last", "node", "console", "events", "colon" or "comma"; "" for
// another.
func (v View) Word(key string) string { return v.words[key] }

// InBrackets puts a text in brackets, as the format's language does behind another text.
func (v View) InBrackets(s string) string { return fmt.Sprintf(v.words["brackets"], s) }

// Indent writes each line of a text behind four spaces.
func (v View) Indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }
