package crd

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// cell returns a value as a column of that type shows it, nil if it is of another type.
func cell(value any, columnType string) any {
	switch columnType {
	case "string":
		return textCell(value)
	case "date":
		return ageCell(value)
	}
	switch v := value.(type) {
	case int64:
		if columnType != "boolean" {
			return v
		}
	case float64:
		switch columnType {
		case "integer":
			return int64(v)
		case "number":
			return v
		}
	case bool:
		if columnType == "boolean" {
			return v
		}
	}
	return nil
}

// textCell returns a value as a text.
func textCell(value any) any {
	switch v := value.(type) {
	case nil, string:
		return v
	case bool, int64, float64:
		return fmt.Sprint(v)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return string(text)
}

// ageCell returns how long ago a time was.
func ageCell(value any) any {
	text, isText := value.(string)
	if !isText {
		return nil
	}
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case text == "":
		return "<unknown>"
	case err != nil:
		return "<invalid>"
	}
	return duration.HumanDuration(time.Since(at))
}
