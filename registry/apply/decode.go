package apply

import (
	"bytes"
	"errors"
	"fmt"

	goyaml "go.yaml.in/yaml/v2"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Decode implements [registry.Applier].
func (a *applier) Decode(text []byte) (config map[string]any, strict []error, err error) {
	// Clients send JSON, which is YAML, too, but is read faster.
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		if strict, err = kjson.UnmarshalStrict(text, &config); err == nil {
			return config, strict, nil
		}
	}
	return decodeYAML(text)
}

// aliasBytes is how large the aliases of a document of YAML may make it, if the document is
// not half as large itself.
const aliasBytes = 3 << 20

// decodeYAML reads one document of YAML.
func decodeYAML(text []byte) (config map[string]any, strict []error, err error) {
	if err := checkAliases(text); err != nil {
		return nil, nil, err
	}
	document, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		strict = append(strict, err)
		if document, err = yaml.YAMLToJSON(text); err != nil {
			return nil, nil, err
		}
	}
	if bytes.Equal(document, []byte("null")) {
		return nil, nil, errors.New("it is empty")
	}
	config = nil
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &config); err != nil {
		return nil, nil, err
	}
	return config, strict, nil
}

// checkAliases refuses YAML whose aliases make it much larger than its text. The parser
// bounds their number, but not the bytes of what they repeat.
func checkAliases(text []byte) error {
	if !bytes.Contains(text, []byte("*")) {
		return nil
	}
	var document any
	if err := goyaml.Unmarshal(text, &document); err != nil {
		return err
	}
	limit := max(2*len(text), aliasBytes)
	if remaining(document, limit) < 0 {
		return fmt.Errorf("its aliases make it larger than %d bytes: write them out, or apply less", limit)
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
