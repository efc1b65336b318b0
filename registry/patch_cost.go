package registry

import (
	"errors"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

var errMoves = errors.New("it would take too long: its operations insert and remove too many items in lists of this length; send fewer, or the whole list")

// affordable returns errMoves if the operations would take too long on lists of that length.
func affordable(operations jsonpatch.Patch, length int) error {
	moves := 0
	for _, operation := range operations {
		switch operation.Kind() {
		case "add", "remove", "copy":
			moves += inList(operation.Path())
		case "move":
			moves += inList(operation.Path()) + inList(operation.From())
		}
	}
	if length > 0 && moves > maxMoved/length {
		return errMoves
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

// longestList returns how many items the longest list has in JSON that is not nested too deep.
func longestList(text []byte) (longest int) {
	var commas [maxDepth + recordedDepth + 1]int // by depth
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += textSize(text[i+1:]) + 1
		case '{', '[':
			depth = min(depth+1, len(commas)-1)
			commas[depth] = 0
		case ',':
			commas[depth]++
		case ']':
			longest = max(longest, commas[depth]+1)
			depth = max(depth-1, 0)
		case '}':
			depth = max(depth-1, 0)
		}
	}
	return longest
}
