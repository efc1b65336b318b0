package patch

import (
	"errors"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// Each operation that inserts an item into a list, or removes one, moves the items of the list, and each that
// sets a field of an object, or removes one, compares the names of its fields. maxMoved and maxCompared are
// the most for which there is time, some seconds.
const (
	maxMoved    = 200_000_000
	maxCompared = 500_000_000
)

var (
	errMoves   = errors.New("it would take too long: its operations insert and remove too many items in lists of this length; send fewer, or the whole list")
	errLookups = errors.New("it would take too long: it has too many operations for an object with this many fields; send fewer, or the whole object")
)

// affordable returns errMoves if operations would take too long on lists of that length, and errLookups if
// on objects with that many fields.
func affordable(list jsonpatch.Patch, items, fields int) error {
	moves, lookups := 0, 0
	for _, operation := range list {
		switch operation.Kind() {
		case "replace":
			lookups++
		case "add", "remove", "copy":
			lookups++
			moves += inList(operation.Path())
		case "move":
			lookups += 2
			moves += inList(operation.Path()) + inList(operation.From())
		}
	}
	switch {
	case moves > maxMoved/max(items, 1):
		return errMoves
	case lookups > maxCompared/max(fields, 1):
		return errLookups
	}
	return nil
}

// inList returns 1 for a path that may be that of an item in a list, and 0 for others. An item at the end, "-",
// moves none.
func inList(path string, err error) int {
	if err != nil {
		return 0
	}
	if _, err = strconv.Atoi(path[strings.LastIndexByte(path, '/')+1:]); err != nil { // as the library reads it
		return 0
	}
	return 1
}
