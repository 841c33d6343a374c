package alarm

// The texts of a format without templates: one layout for all languages.

const builtinPlain = `{{.Headline}}

{{with .Trouble}}{{$.Word "trouble"}}{{$.Word "colon"}}{{.}}
{{end -}}
{{with .Job}}{{$.Word "job"}}{{$.Word "colon"}}{{.}}
{{else}}{{with .App}}{{$.Word "app"}}{{$.Word "colon"}}{{.}}
{{end}}{{end -}}
{{if eq .Count 1 -}}
{{.Word "happened"}}{{.Word "colon"}}{{.Time .Last}}
{{else -}}
{{.Word "first"}}{{.Word "colon"}}{{.Time .First}}
{{.Word "last"}}{{.Word "colon"}}{{.Time .Last}}
{{end -}}
{{with .Node}}{{$.Word "node"}}{{$.Word "colon"}}{{.}}
{{end -}}
{{with .Link}}{{$.Word "console"}}{{$.Word "colon"}}{{.}}
{{end -}}
{{if .Events}}
{{.Word "events"}}
{{range .Events}}- {{$.Time .At}} {{$.CauseName .Cause}}{{with $.Details .}}{{$.InBrackets .}}{{end}}
{{with .Text}}{{$.Indent .}}
{{end}}{{end}}{{with .Earlier}}{{.}}
{{end}}{{end}}`

const builtinHTML = `<!DOCTYPE html>
<html><head><meta charset="utf-8"></head>
<body style="font-family:sans-serif;font-size:14px;color:#222">
<h2 style="font-size:18px;color:{{if .Good}}#18794e{{else}}#b42318{{end}}">{{.Headline}}</h2>
<table style="border-collapse:collapse">
{{with .Trouble}}<tr><th align="left" style="padding:2px 16px 2px 0">{{$.Word "trouble"}}</th><td>{{.}}</td></tr>
{{end -}}
{{with .Job}}<tr><th align="left" style="padding:2px 16px 2px 0">{{$.Word "job"}}</th><td dir="auto">{{.}}</td></tr>
{{else}}{{with .App}}<tr><th align="left" style="padding:2px 16px 2px 0">{{$.Word "app"}}</th><td dir="auto">{{.}}</td></tr>
{{end}}{{end -}}
{{if eq .Count 1 -}}
<tr><th align="left" style="padding:2px 16px 2px 0">{{.Word "happened"}}</th><td>{{.Time .Last}}</td></tr>
{{else -}}
<tr><th align="left" style="padding:2px 16px 2px 0">{{.Word "first"}}</th><td>{{.Time .First}}</td></tr>
<tr><th align="left" style="padding:2px 16px 2px 0">{{.Word "last"}}</th><td>{{.Time .Last}}</td></tr>
{{end -}}
{{with .Node}}<tr><th align="left" style="padding:2px 16px 2px 0">{{$.Word "node"}}</th><td>{{.}}</td></tr>
{{end -}}
{{with .Link}}<tr><th align="left" style="padding:2px 16px 2px 0">{{$.Word "console"}}</th><td><a href="{{.}}">{{.}}</a></td></tr>
{{end -}}
</table>
{{if .Events}}<p><b>{{.Word "events"}}</b></p>
<ul>
{{range .Events}}<li>{{$.Time .At}} {{$.CauseName .Cause}}{{with $.Details .}}{{$.InBrackets .}}{{end}}
{{- with .Text}}<pre dir="auto" style="white-space:pre-wrap;margin:4px 0;padding:8px;background:#f4f4f5">{{.}}</pre>{{end}}</li>
{{end}}</ul>
{{with .Earlier}}<p>{{.}}</p>
{{end}}{{end}}</body></html>
`

// subject is the built-in subject line. A long name is cut, and the headline is not.
func subject(v View) string {
	name := v.JobName
	if name == "" {
		name = v.JobKey
	}
	if v.Trouble != "" {
		name = v.Trouble
	}
	s := Cut(name, 90) + v.words["colon"] + v.Headline
	if v.App != "" {
		s = "[" + Cut(v.App, 40) + "] " + s
	}
	return Line(s, maxSubject)
}
