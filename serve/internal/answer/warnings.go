package answer

import (
	"net/http"
	"strings"
	"unicode/utf8"
)

// Bounds of the warnings of a response, in runes: of all together, and of each if all
// together exceed theirs.
const (
	warningsLimit   = 4096
	warningCutLimit = 256
)

// warnings are the texts of Warning headers, without repetitions. The zero value has none.
type warnings struct {
	texts []string
	known map[string]bool
}

// add adds a text, unless it is there already.
func (w *warnings) add(text string) {
	if w.known[text] {
		return
	}
	if w.known == nil {
		w.known = map[string]bool{}
	}
	w.known[text] = true
	w.texts = append(w.texts, text)
}

// setIn sets the headers, and forgets the texts.
func (w *warnings) setIn(h http.Header) {
	total := 0
	for _, text := range w.texts {
		total += utf8.RuneCountInString(text)
	}
	used := 0
	for _, text := range w.texts {
		runes := []rune(printable(text))
		if total > warningsLimit {
			runes = runes[:min(len(runes), warningCutLimit)]
		}
		if used += len(runes); used > warningsLimit {
			break
		}
		h.Add("Warning", `299 - "`+quoteEscaper.Replace(string(runes))+`"`)
	}
	w.texts, w.known = nil, nil
}

var quoteEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// printable replaces the characters that a header cannot hold.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
