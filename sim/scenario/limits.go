package scenario

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// MaxFile is the maximum size of a scenario's file in bytes: 64 KiB, which is more than
// thirty times the largest that is shipped.
const MaxFile = 64 << 10

// The other limits of a file. The YAML parser keeps the path to each value, so that
// it takes memory for depth times names times values.
const (
	maxDepth      = 20      // lists and mappings within each other
	maxName       = 128     // bytes of a field's name
	maxText       = 4 << 10 // bytes of a value
	maxBlankLines = 100     // in a row: the scanner copies a text once for each at its end
)

// The limits of a file with all aliases written out.
const (
	maxNodes   = 100_000 // lists, mappings and values
	maxWritten = 4 << 20 // bytes of values and of the paths to them
)

// checkText checks the limits that keep scanning the file cheap.
func checkText(data []byte) *Error {
	if len(data) > MaxFile {
		return &Error{
			Line: 1 + bytes.Count(data[:MaxFile], []byte{'\n'}), Column: 1,
			Problem: fmt.Sprintf("the file has more than %d bytes", MaxFile),
			Fix:     "use fewer groups with larger counts, or make the scenario in Go",
		}
	}
	number, blank := 0, 0
	for line := range strings.Lines(lineBreaks.Replace(string(data))) {
		number++
		if blank++; strings.TrimSpace(line) != "" {
			blank = 0
		}
		if blank > maxBlankLines {
			return &Error{
				Line: number, Column: 1,
				Problem: fmt.Sprintf("there are more than %d blank lines in a row", maxBlankLines), Fix: "leave them out",
			}
		}
	}
	return nil
}

// lineBreaks replaces the line breaks of YAML by newlines.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// checkTokens checks the limits that keep parsing the tokens cheap.
func checkTokens(tokens token.Tokens) *Error {
	var n nesting
	for _, tk := range tokens {
		n.take(tk)
		if len(n.levels) > maxDepth {
			return errorAt(tk, fmt.Sprintf("more than %d lists and mappings are within each other", maxDepth), "nest less deeply")
		}
		if e := checkLength(tk); e != nil {
			return e
		}
	}
	return nil
}

// checkLength checks the length of a name or value.
func checkLength(tk *token.Token) *Error {
	isName := tk.Next != nil && tk.Next.Type == token.MappingValueType
	switch size := len(tk.Value); {
	case tk.Type == token.CommentType || tk.Type == token.InvalidType:
		return nil
	case isName && size > maxName:
		return errorAt(tk, fmt.Sprintf("the name %s has %d bytes", quoted(tk.Value), size), fmt.Sprintf("the most is %d", maxName))
	case size > maxText:
		return errorAt(tk, fmt.Sprintf("the value %s has %d bytes", quoted(tk.Value), size), fmt.Sprintf("the most is %d", maxText))
	}
	return nil
}

func errorAt(tk *token.Token, problem, fix string) *Error {
	return &Error{Line: tk.Position.Line, Column: tk.Position.Column, Problem: problem, Fix: fix}
}

// nesting computes how deep lists and mappings are nested at each token: by brackets,
// and outside of brackets by the columns at which entries start.
type nesting struct {
	levels []level // the outermost first
	// start is the column at which the current entry starts, previous is the token
	// before.
	start    int
	previous *token.Token
}

// level is a list or a mapping that has not ended.
type level struct {
	// bracket is set if it ends with its closing bracket, rather than at an entry
	// that starts further left.
	bracket bool
	// dash is set if its entries start with a dash. Such a list may start in the
	// same column as the mapping around it.
	dash   bool
	column int
}

// take adds the next token.
func (n *nesting) take(tk *token.Token) {
	if !n.inBrackets() && n.starts(tk) {
		n.start = tk.Position.Column
	}
	switch tk.Type {
	case token.SequenceStartType, token.MappingStartType:
		n.levels = append(n.levels, level{bracket: true})
	case token.SequenceEndType, token.MappingEndType:
		n.endBracket()
	case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
		n.entry(tk)
	}
	n.previous = tk
}

func (n *nesting) inBrackets() bool {
	return len(n.levels) > 0 && n.levels[len(n.levels)-1].bracket
}

// starts reports whether an entry starts with the token: it is the first token of a
// line, or the first of another entry's value.
func (n *nesting) starts(tk *token.Token) bool {
	if n.previous == nil || n.previous.Position.Line != tk.Position.Line {
		return true
	}
	switch n.previous.Type {
	case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
		return true
	}
	return false
}

// entry starts an entry of a list or mapping without brackets.
func (n *nesting) entry(tk *token.Token) {
	if n.inBrackets() && tk.Type == token.MappingValueType {
		return // of the mapping in brackets
	}
	entry := level{dash: tk.Type == token.SequenceEntryType, column: n.start}
	if n.inBrackets() {
		entry.column = tk.Position.Column
	}
	for len(n.levels) > 0 && n.levels[len(n.levels)-1].endsBefore(entry) {
		n.levels = n.levels[:len(n.levels)-1]
	}
	n.levels = append(n.levels, entry)
}

// endsBefore reports whether the list or mapping, or its last entry, ends where the
// new entry starts.
func (l level) endsBefore(entry level) bool {
	return !l.bracket && (l.column > entry.column || l.column == entry.column && (l.dash || !entry.dash))
}

// endBracket ends the innermost list or mapping in brackets and all that is in it.
func (n *nesting) endBracket() {
	for i := len(n.levels) - 1; i >= 0; i-- {
		if n.levels[i].bracket {
			n.levels = n.levels[:i]
			return
		}
	}
}
