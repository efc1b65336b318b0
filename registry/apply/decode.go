package apply

import (
	"bytes"
	"errors"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/watchmill/watchmill/registry/internal/aliases"
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

// decodeYAML reads one document of YAML.
func decodeYAML(text []byte) (config map[string]any, strict []error, err error) {
	if err := aliases.Check(text); err != nil {
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
