// Package excerpt shortens texts of clients for errors, which would otherwise be as large as what
// they are about:
//
//	a name of 3 MiB ──Of──▶ its beginning, and "…"
package excerpt

import "strings"

// Of returns the text, or its first bytes and an ellipsis if it has more than most. It does not end
// in the middle of a character of UTF-8.
func Of(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
