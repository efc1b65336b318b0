// Package usercode handles what an engine's user supplies: functions, which may
// panic, and settings, which may be wrong. [Call] contains panics as
// [PanicError]s; wrong settings are [ConfigError]s.
//
//	handler, getter, transform ──▶ Call ──▶ panic ──▶ *PanicError ──▶ returned, logged, or the end of a watch
//	options ──▶ Validate ──▶ *ConfigError: which field is wrong, and what to write instead
package usercode
