package aliases

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v2"
)

// most is how large the aliases of a document may make it, if the document is not half as large
// itself.
const most = 3 << 20

// Check refuses a document whose aliases make it much larger than its text, and one that does not
// parse if it has any.
func Check(text []byte) error {
	if !bytes.Contains(text, []byte("*")) {
		return nil
	}
	var document any
	if err := yaml.Unmarshal(text, &document); err != nil {
		return err
	}
	limit := max(2*len(text), most)
	if remaining(document, limit) < 0 {
		return fmt.Errorf("its aliases make it larger than %d bytes: write them out, or give less", limit)
	}
	return nil
}

// remaining returns what is left of a budget of bytes after those of a value. It stops
// counting, and the result is negative, once the budget is used up.
func remaining(value any, budget int) int {
	budget--
	switch v := value.(type) {
	case string:
		budget -= len(v)
	case []any:
		for i := 0; i < len(v) && budget >= 0; i++ {
			budget = remaining(v[i], budget)
		}
	case map[any]any:
		for key, member := range v {
			if budget = remaining(member, remaining(key, budget)); budget < 0 {
				break
			}
		}
	}
	return budget
}
