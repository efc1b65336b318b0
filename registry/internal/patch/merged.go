package patch

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// EncodeMerged returns the JSON of an object that was merged. rounds reports that it has numbers
// of 2^63 or more: they have a form that fields for integers refuse, since merging has rounded
// them.
func EncodeMerged(merged map[string]any) (text []byte, rounds bool, err error) {
	if rounds = hasLarge(merged); rounds {
		merged = exponential(merged).(map[string]any)
	}
	text, err = json.Marshal(merged)
	return text, rounds, err
}

// hasLarge reports whether there is a number of 2^63 or more in a value. Merging knows integers
// that are less; one that is not is a floating-point number, and has lost its last digits.
func hasLarge(value any) bool {
	switch v := value.(type) {
	case float64:
		return math.Abs(v) >= 1<<63
	case map[string]any:
		for _, member := range v {
			if hasLarge(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasLarge)
	}
	return false
}

// exponential returns a copy of a value with its large numbers in a form that a field for
// integers is not decoded from.
func exponential(value any) any {
	switch v := value.(type) {
	case float64:
		if hasLarge(v) {
			return json.Number(strconv.FormatFloat(v, 'e', -1, 64))
		}
	case map[string]any:
		members := make(map[string]any, len(v))
		for name, member := range v {
			members[name] = exponential(member)
		}
		return members
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = exponential(item)
		}
		return items
	}
	return value
}
