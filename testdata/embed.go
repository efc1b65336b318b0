// Package testdata holds the recorded history that is shipped with the program.
package testdata

import _ "embed" // for the history

// GitHistorySmall is the history of a repository as a trace, see package trace:
// 9,042 changes of files in eight years, compressed.
//
//go:embed git-history-small.ndjson.gz
var GitHistorySmall []byte
