package crd

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// cell returns a value as a column of that type shows it, nil if it is of another type.
func cell(value any, columnType string) any {
	switch columnType {
	case "string":
		return textCell(value)
	case "date":
		return ageCell(value)
	case "boolean":
		if v, isBool := value.(bool); isBool {
			return v
		}
	case "integer":
		switch v := value.(type) {
		case int64:
			return v
		case float64:
			return int64(v)
		}
	case "number":
		switch v := value.(type) {
		case int64, float64:
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

// ageCell returns how long ago a time was. As in Kubernetes, "null" and the first time of all are
// those of something that has not happened.
func ageCell(value any) any {
	text, isText := value.(string)
	if !isText {
		return nil
	}
	var at metav1.Time
	switch err := at.UnmarshalQueryParameter(text); {
	case err != nil:
		return "<invalid>"
	case at.IsZero():
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(at.Time))
}
