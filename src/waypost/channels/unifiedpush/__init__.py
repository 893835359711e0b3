"""UnifiedPush: push servers that users choose, such as ntfy, NextPush and Mozilla's."""
