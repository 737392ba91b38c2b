/// A shell that completes what is typed.
public enum Shell: String, Sendable, CaseIterable { case bash, zsh, fish }

extension Program {
  /// The command that prints the script.
  public var completionCommand: Command {
    Command(
      name: "completion", summary: "prints the completion script of a shell: bash, zsh or fish",
      operands: ["SHELL"], options: [],
      examples: [
        "source <(\(name) completion bash)",
        "\(name) completion fish > ~/.config/fish/completions/\(name).fish",
      ])
  }

  /// The script for a shell, made from the commands and their options.
  public func completion(for shell: String) throws(ArgumentError) -> String {
    switch Shell(rawValue: shell) {
    case .bash: return bash
    case .zsh: return zsh
    case .fish: return fish
    case nil:
      let names = Shell.allCases.map(\.rawValue).joined(separator: ", ")
      throw ArgumentError("no completion for '\(shell)'; expected \(names)")
    }
  }

  private var function: String { "_" + name.map { $0 == "-" ? "_" : String($0) }.joined() }

  // MARK: bash

  private var bash: String {
    var lines = [
      "\(function)() {",
      #"  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}""#,
      "  COMPREPLY=()", #"  if [ "$COMP_CWORD" -eq 1 ]; then"#,
      "    COMPREPLY=($(compgen -W '\(commands.map(\.name).joined(separator: " ")) --help --version' -- \"$current\"))",
      "    return", "  fi", #"  case "${COMP_WORDS[1]} $previous" in"#,
    ]
    for command in commands {
      for option in command.options {
        switch option.argument {
        case .none: continue
        case .file:
          lines.append(
            "    '\(command.name) \(option.name)') COMPREPLY=($(compgen -f -- \"$current\")); return ;;")
        case .words(let words):
          lines.append(
            "    '\(command.name) \(option.name)') COMPREPLY=($(compgen -W '\(words.joined(separator: " "))' -- \"$current\")); return ;;"
          )
        case .other: lines.append("    '\(command.name) \(option.name)') return ;;")
        }
      }
    }
    lines += ["  esac", #"  case "${COMP_WORDS[1]}" in"#]
    for command in commands {
      let words = (command.options.map(\.name) + ["--help"] + command.operandWords).joined(separator: " ")
      lines.append("    \(command.name)) COMPREPLY=($(compgen -W '\(words)' -- \"$current\")) ;;")
    }
    lines += ["  esac", "}", "complete -F \(function) \(name)"]
    return lines.joined(separator: "\n")
  }

  // MARK: zsh

  private var zsh: String {
    func quoted(_ text: String) -> String {
      var result = ""
      for character in text {
        switch character {
        case "'": result += "'\\''"
        case "[", "]", ":", "\\": result += "\\\(character)"
        default: result.append(character)
        }
      }
      return result
    }
    var lines = ["#compdef \(name)", "\(function)() {", "  local -a commands=("]
    for command in commands { lines.append("    '\(command.name):\(quoted(command.summary))'") }
    lines += [
      "  )", "  if (( CURRENT == 2 )); then", "    _describe command commands", "    return", "  fi",
      "  local command=$words[2]", "  shift words", "  (( CURRENT-- ))", "  case $command in",
    ]
    for command in commands {
      var specs = command.options.map { option in
        let head = "\(option.isRepeatable ? "*" : "")\(option.name)[\(quoted(option.help))]"
        switch option.argument {
        case .none: return "'\(head)'"
        case .file: return "'\(head):\(quoted(option.placeholder ?? "")):_files'"
        case .words(let words): return "'\(head):\(quoted(option.name)):(\(words.joined(separator: " ")))'"
        case .other: return "'\(head):\(quoted(option.placeholder ?? "")): '"
        }
      }
      specs.append("'--help[this text]'")
      if !command.operandWords.isEmpty {
        specs.append("'1:word:(\(command.operandWords.joined(separator: " ")))'")
      }
      lines.append("    \(command.name)) _arguments \(specs.joined(separator: " \\\n      ")) ;;")
    }
    lines += [
      "  esac", "}",
      "if [ \"$funcstack[1]\" = \"\(function)\" ]; then \(function) \"$@\"; else compdef \(function) \(name); fi",
    ]
    return lines.joined(separator: "\n")
  }

  // MARK: fish

  private var fish: String {
    func quoted(_ text: String) -> String {
      "'" + text.map { $0 == "'" || $0 == "\\" ? "\\\($0)" : String($0) }.joined() + "'"
    }
    var lines = ["complete -c \(name) -f"]
    for command in commands {
      lines.append(
        "complete -c \(name) -n __fish_use_subcommand -a \(command.name) -d \(quoted(command.summary))")
    }
    for command in commands {
      let start = "complete -c \(name) -n '__fish_seen_subcommand_from \(command.name)'"
      for option in command.options {
        let end =
          switch option.argument {
          case .none: ""
          case .file: " -r -F"
          case .words(let words): " -x -a '\(words.joined(separator: " "))'"
          case .other: " -x"
          }
        lines.append("\(start) -l \(option.name.dropFirst(2))\(end) -d \(quoted(option.help))")
      }
      if !command.operandWords.isEmpty {
        lines.append("\(start) -a '\(command.operandWords.joined(separator: " "))'")
      }
    }
    return lines.joined(separator: "\n")
  }
}

extension Option {
  fileprivate enum Argument {
    case none, file, other
    case words([String])
  }

  /// What a shell can offer as the value, by the placeholder.
  fileprivate var argument: Argument {
    guard let placeholder else { return .none }
    if placeholder == "FILE" { return .file }
    return placeholder.contains("|") ? .words(placeholder.split(separator: "|").map(String.init)) : .other
  }
}

extension Command {
  fileprivate var operandWords: [String] {
    operands == ["SHELL"] ? Shell.allCases.map(\.rawValue) : []
  }
}
